// A pickle machine over opaque values: it keeps integers, strings, class names, tuples and storages, and nothing else of what the
// opcodes build. Needs no torch; destroys nothing.
#include "compiler/import/pickle_check.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

namespace memscale::import {
namespace {

constexpr size_t kStackItems = size_t{1} << 24;

struct Item {
  enum class Kind : uint8_t { kOpaque, kInt, kText, kClass, kTuple, kStorage, kMark };
  Item() = default;
  Item(Kind k, int64_t n = 0, int64_t item = 0, std::string t = "") : kind(k), number(n), item_bytes(item), text(std::move(t)) {}

  Kind kind = Kind::kOpaque;
  int64_t number = 0;                                // kInt; bytes of the storage for kStorage
  int64_t item_bytes = 0;                            // kStorage
  std::string text;                                  // kText, kClass
  std::shared_ptr<const std::vector<Item>> entries;  // kTuple
};
using Kind = Item::Kind;

struct Broken {
  Error error;
};

class Machine {
 public:
  Machine(const std::string& bytes, const std::string& record, const PickleClaims& claims)
      : bytes_(bytes), record_(record), claims_(claims) {}

  void run() {
    while (true) {
      uint8_t op = take(1)[0];
      switch (op) {
        case '.':
          return;  // STOP
        case 0x80:
          take(1);
          break;  // PROTO
        case 0x95:
          take(8);
          break;  // FRAME
        case '(':
          push({Kind::kMark});
          break;  // MARK
        case ']':
        case '}':
        case 'N':
        case 0x88:
        case 0x89:
          push({});
          break;  // EMPTY_LIST EMPTY_DICT NONE NEWTRUE NEWFALSE
        case ')':
          push_tuple({});
          break;  // EMPTY_TUPLE
        case '0':
          pop();
          break;  // POP
        case '2':
          push(top());
          break;  // DUP
        case 'q':
          memo_[number(1)] = top();
          break;  // BINPUT
        case 'r':
          memo_[number(4)] = top();
          break;  // LONG_BINPUT
        case 0x94: {
          size_t next = memo_.size();
          memo_[next] = top();
          break;
        }  // MEMOIZE
        case 'h':
          get(number(1));
          break;  // BINGET
        case 'j':
          get(number(4));
          break;  // LONG_BINGET
        case 'K':
          push_number(static_cast<int64_t>(number(1)));
          break;  // BININT1
        case 'M':
          push_number(static_cast<int64_t>(number(2)));
          break;  // BININT2
        case 'J':
          push_number(static_cast<int32_t>(number(4)));
          break;  // BININT
        case 0x8a:
          long_number(number(1));
          break;  // LONG1
        case 'G':
          take(8);
          push({});
          break;  // BINFLOAT
        case 'X':
          push_text(number(4));
          break;  // BINUNICODE
        case 0x8c:
          push_text(number(1));
          break;  // SHORT_BINUNICODE
        case 0x8d:
          push_text(number(8));
          break;  // BINUNICODE8
        case 'U':
          push_text(number(1));
          break;  // SHORT_BINSTRING
        case 'T':
          push_text(number(4));
          break;  // BINSTRING
        case 'B':
          push_text(number(4));
          break;  // BINBYTES
        case 'C':
          push_text(number(1));
          break;  // SHORT_BINBYTES
        case 't':
          push_tuple(pop_to_mark());
          break;  // TUPLE
        case 0x85:
        case 0x86:
        case 0x87:
          push_tuple(pop_many(op - 0x84));
          break;  // TUPLE1..3
        case 'a':
          pop();
          need(1);
          break;  // APPEND
        case 's':
          pop_many(2);
          need(1);
          break;  // SETITEM
        case 'e':
        case 'u':
          pop_to_mark();
          need(1);
          break;  // APPENDS SETITEMS
        case 'b':
          pop();
          need(1);
          break;  // BUILD
        case 0x81: {
          pop();
          Item made = pop();
          made.kind = Kind::kOpaque;
          push(made);
          break;
        }  // NEWOBJ
        case 'c': {
          std::string module = line();
          push({Kind::kClass, 0, 0, module + "." + line()});
          break;
        }  // GLOBAL
        case 'R':
          reduce();
          break;
        case 'Q':
          persistent();
          break;  // BINPERSID
        default:
          broken("opcode " + std::to_string(op) + ", which LibTorch does not write");
      }
    }
  }

 private:
  [[noreturn]] void broken(const std::string& what) {
    throw Broken{{Exit::kUnsafe, "record '" + record_ + "' is broken or hostile: " + what,
                  "write the archive again with torch.jit.save; if it comes from elsewhere, do not trust it"}};
  }

  const uint8_t* take(uint64_t n) {
    if (n > bytes_.size() - at_) broken("it ends early");
    const uint8_t* p = reinterpret_cast<const uint8_t*>(bytes_.data()) + at_;
    at_ += n;
    return p;
  }
  uint64_t number(int width) {
    const uint8_t* p = take(width);
    uint64_t value = 0;
    for (int i = 0; i < width; ++i) value |= uint64_t{p[i]} << (8 * i);
    return value;
  }
  std::string line() {
    size_t end = bytes_.find('\n', at_);
    if (end == std::string::npos) broken("a class name ends early");
    std::string out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }

  void need(size_t n) {
    if (stack_.size() < n) broken("its stack runs empty");
  }
  Item& top() {
    need(1);
    return stack_.back();
  }
  void push(Item item) {
    if (stack_.size() >= kStackItems) broken("its stack grows too deep");
    stack_.push_back(std::move(item));
  }
  Item pop() {
    need(1);
    Item item = std::move(stack_.back());
    stack_.pop_back();
    return item;
  }
  std::vector<Item> pop_many(size_t n) {
    need(n);
    std::vector<Item> items(std::make_move_iterator(stack_.end() - n), std::make_move_iterator(stack_.end()));
    stack_.resize(stack_.size() - n);
    return items;
  }
  std::vector<Item> pop_to_mark() {
    size_t n = 0;
    while (n < stack_.size() && stack_[stack_.size() - 1 - n].kind != Kind::kMark) ++n;
    if (n == stack_.size()) broken("a mark is missing");
    std::vector<Item> items = pop_many(n);
    stack_.pop_back();
    return items;
  }
  void push_number(int64_t value) { push({Kind::kInt, value}); }
  void long_number(uint64_t width) {
    const uint8_t* p = take(width);
    if (width > 8) {
      push({});
      return;
    }
    uint64_t value = width > 0 && p[width - 1] >= 0x80 ? ~uint64_t{0} : 0;
    for (uint64_t i = width; i-- > 0;) value = value << 8 | p[i];
    push_number(static_cast<int64_t>(value));
  }
  void push_text(uint64_t n) {
    const uint8_t* p = take(n);
    push({Kind::kText, 0, 0, std::string(reinterpret_cast<const char*>(p), n)});
  }
  /// Tuples inside tuples are dropped below one level: nothing that is checked is nested deeper, and destruction stays shallow.
  void push_tuple(std::vector<Item> items) {
    for (Item& item : items) {
      if (item.entries == nullptr) continue;
      for (const Item& inner : *item.entries) {
        if (inner.kind == Kind::kTuple) item = Item{};
        if (item.entries == nullptr) break;
      }
    }
    Item tuple{Kind::kTuple};
    tuple.entries = std::make_shared<const std::vector<Item>>(std::move(items));
    push(std::move(tuple));
  }
  void get(uint64_t place) {
    auto it = memo_.find(place);
    if (it == memo_.end()) broken("it reads a value that it did not keep");
    push(it->second);
  }

  /// ('storage', class, key, location, element count)
  void persistent() {
    Item id = pop();
    if (id.kind != Kind::kTuple || id.entries->size() < 5) broken("a storage is not described by five values");
    const std::vector<Item>& e = *id.entries;
    if (e[0].kind != Kind::kText || e[0].text != "storage" || e[1].kind != Kind::kClass || e[2].kind != Kind::kText ||
        e[3].kind != Kind::kText || e[4].kind != Kind::kInt) {
      broken("a storage is described by values of other types");
    }
    std::string cls = e[1].text.substr(e[1].text.rfind('.') + 1);
    auto item = claims_.item_bytes.find(cls);
    if (item == claims_.item_bytes.end()) {
      throw Broken{{Exit::kUnsupported, "record '" + record_ + "' holds a storage of the unknown class '" + e[1].text + "'",
                    "convert the tensors before saving"}};
    }
    int64_t bytes = 0;
    if (e[4].number < 0 || __builtin_mul_overflow(e[4].number, item->second, &bytes))
      broken("a storage of " + std::to_string(e[4].number) + " elements");
    auto held = claims_.record_bytes.find(e[2].text);
    if (e[3].text != "meta") {
      if (held == claims_.record_bytes.end()) broken("the bytes of storage '" + e[2].text + "' are missing");
      if (bytes > held->second) {
        broken("storage '" + e[2].text + "' claims " + std::to_string(bytes) + " bytes, its record holds " +
               std::to_string(held->second));
      }
    }
    push({Kind::kStorage, bytes, item->second});
  }

  /// Calls whose first operand is a storage make a tensor: (storage, offset, sizes, strides, ...).
  void reduce() {
    Item operands = pop();
    pop();
    if (operands.kind == Kind::kTuple && operands.entries->size() >= 4 && operands.entries->front().kind == Kind::kStorage)
      check_tensor(*operands.entries);
    push({});
  }
  void check_tensor(const std::vector<Item>& e) {
    if (e[1].kind != Kind::kInt || e[2].kind != Kind::kTuple || e[3].kind != Kind::kTuple ||
        e[2].entries->size() != e[3].entries->size()) {
      broken("a tensor is described by values of other types");
    }
    int64_t last = e[1].number;
    bool wrong = last < 0, empty = false;
    for (size_t d = 0; d < e[2].entries->size(); ++d) {
      const Item &size = (*e[2].entries)[d], &stride = (*e[3].entries)[d];
      if (size.kind != Kind::kInt || stride.kind != Kind::kInt || size.number < 0 || stride.number < 0)
        broken("a tensor has sizes or strides that are no counts");
      int64_t reach = 0;
      empty |= size.number == 0;
      if (size.number > 0)
        wrong |= __builtin_mul_overflow(size.number - 1, stride.number, &reach) || __builtin_add_overflow(last, reach, &last);
    }
    int64_t end = 0;
    wrong |= __builtin_add_overflow(last, 1, &end) || __builtin_mul_overflow(end, e[0].item_bytes, &end);
    if (!empty && (wrong || end > e[0].number))
      broken("a tensor reaches beyond its storage of " + std::to_string(e[0].number) + " bytes");
  }

  const std::string& bytes_;
  const std::string& record_;
  const PickleClaims& claims_;
  size_t at_ = 0;
  std::vector<Item> stack_;
  std::unordered_map<uint64_t, Item> memo_;
};

}  // namespace

Expected<Success> check_pickle(const std::string& bytes, const std::string& record, const PickleClaims& claims) {
  try {
    Machine(bytes, record, claims).run();
  } catch (const Broken& b) {
    return b.error;
  }
  return Success{};
}

}  // namespace memscale::import
