// See expression.h.
#include "compiler/cost/expression.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace memscale::cost {
namespace {
constexpr size_t kMaxLength = 1000;
constexpr int kMaxDepth = 50;
}  // namespace

class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  Expected<Expression> run() {
    if (text_.size() > kMaxLength) return fault("expected at most " + std::to_string(kMaxLength) + " characters");
    sum();
    skip();
    if (error_.empty() && at_ < text_.size()) stop("expected an operator or the end");
    if (!error_.empty()) return fault(error_);
    out_.text_ = text_;
    return std::move(out_);
  }

 private:
  using Code = Expression::Code;

  Error fault(const std::string& text) const {
    return {Exit::kUsage, "column " + std::to_string(error_at_ + 1) + " of '" + std::string(text_.substr(0, 80)) + "': " + text,
            ""};
  }
  void stop(const std::string& text) {
    if (!error_.empty()) return;
    error_ = text;
    error_at_ = at_;
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) stop(std::string("expected '") + c + "'");
  }
  void emit(Code code) { out_.steps_.push_back({code}); }

  void sum() {
    product();
    while (error_.empty()) {
      if (take('+')) {
        product();
        emit(Code::kAdd);
      } else if (take('-')) {
        product();
        emit(Code::kSub);
      } else {
        return;
      }
    }
  }

  void product() {
    unary();
    while (error_.empty()) {
      if (take('*')) {
        unary();
        emit(Code::kMul);
      } else if (take('/')) {
        unary();
        emit(Code::kDiv);
      } else {
        return;
      }
    }
  }

  void unary() {
    if (++depth_ > kMaxDepth) stop("nested too deeply");
    if (error_.empty()) operand();
    --depth_;
  }

  void operand() {
    skip();
    if (take('-')) {
      unary();
      emit(Code::kNeg);
    } else if (take('(')) {
      sum();
      expect(')');
    } else if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      number(Code::kNumber, false, 0);
    } else {
      name();
    }
  }

  int64_t digits() {
    int64_t value = 0;
    const auto [end, fault] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (fault != std::errc()) stop("expected an integer below 2^63");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  void number(Code code, bool output, int32_t tensor) {
    skip();
    const int64_t value = digits();
    out_.steps_.push_back({code, output, tensor, value});
  }

  std::string word() {
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  void name() {
    const size_t start = at_;
    const std::string word_ = word();
    if (word_ == "threads") return emit(Code::kThreads);
    if (word_ == "max" || word_ == "min" || word_ == "ceil_div") {
      expect('(');
      sum();
      expect(',');
      sum();
      expect(')');
      return emit(word_ == "max" ? Code::kMax : word_ == "min" ? Code::kMin : Code::kCeilDiv);
    }
    const bool output = word_.rfind("out", 0) == 0;
    const std::string index = word_.substr(output ? 3 : word_.rfind("in", 0) == 0 ? 2 : word_.size());
    if (index.empty() || index.size() > 3 ||
        !std::all_of(index.begin(), index.end(), [](unsigned char c) { return std::isdigit(c); })) {
      at_ = start;
      return stop("expected a number, threads, max, min, ceil_div, or a variable such as in0.bytes");
    }
    const int32_t tensor = std::stoi(index);
    expect('.');
    if (!error_.empty()) return;
    const size_t field_at = at_;
    const std::string field = word();
    if (field == "size") {
      expect('[');
      if (error_.empty()) number(Code::kSize, output, tensor);
      return expect(']');
    }
    if (field == "bytes") return void(out_.steps_.push_back({Code::kBytes, output, tensor}));
    if (field == "numel") return void(out_.steps_.push_back({Code::kNumel, output, tensor}));
    if (field == "itemsize") return void(out_.steps_.push_back({Code::kItemsize, output, tensor}));
    if (field == "rank") return void(out_.steps_.push_back({Code::kRank, output, tensor}));
    at_ = field_at;
    stop("expected bytes, numel, itemsize, rank or size[i]");
  }

  std::string_view text_;
  size_t at_ = 0, error_at_ = 0;
  int depth_ = 0;
  std::string error_;
  Expression out_;
};

Expected<Expression> Expression::parse(std::string_view text) { return ExpressionParser(text).run(); }

Expected<int64_t> Expression::evaluate(const OpDescription& op, int64_t threads) const {
  const auto fault = [&](const std::string& text) {
    return Error{Exit::kCompile, "'" + text_ + "' for " + op.name + ": " + text, ""};
  };
  std::vector<int64_t> stack;
  for (const Step& step : steps_) {
    if (step.code <= Code::kSize) {
      int64_t value = step.value;
      if (step.code == Code::kThreads) value = threads;
      if (step.code >= Code::kBytes) {
        const auto& tensors = step.output ? op.outputs : op.inputs;
        const std::string name = (step.output ? "out" : "in") + std::to_string(step.tensor);
        if (step.tensor >= static_cast<int32_t>(tensors.size()))
          return fault(name + " does not exist, the call has " + std::to_string(tensors.size()));
        const TensorShape& t = tensors[static_cast<size_t>(step.tensor)];
        const auto rank = static_cast<int64_t>(t.sizes.size());
        if (step.code == Code::kBytes) value = t.bytes();
        if (step.code == Code::kNumel) value = t.numel();
        if (step.code == Code::kItemsize) value = item_bytes(t.dtype);
        if (step.code == Code::kRank) value = rank;
        if (step.code == Code::kSize) {
          const int64_t i = step.value < 0 ? step.value + rank : step.value;
          if (i < 0 || i >= rank)
            return fault(name + " has rank " + std::to_string(rank) + ", size[" + std::to_string(step.value) + "] is asked for");
          value = t.sizes[static_cast<size_t>(i)];
        }
      }
      stack.push_back(value);
      continue;
    }
    const int64_t right = stack.back();
    stack.pop_back();
    int64_t result = 0;
    bool overflow = false;
    if (step.code == Code::kNeg) {
      overflow = __builtin_sub_overflow(int64_t{0}, right, &result);
      stack.push_back(result);
    } else {
      int64_t& left = stack.back();
      switch (step.code) {
        case Code::kAdd:
          overflow = __builtin_add_overflow(left, right, &result);
          break;
        case Code::kSub:
          overflow = __builtin_sub_overflow(left, right, &result);
          break;
        case Code::kMul:
          overflow = __builtin_mul_overflow(left, right, &result);
          break;
        case Code::kMax:
          result = std::max(left, right);
          break;
        case Code::kMin:
          result = std::min(left, right);
          break;
        default:
          if (right == 0) return fault("division by zero");
          overflow = left == INT64_MIN && right == -1;
          if (!overflow) result = left / right + (step.code == Code::kCeilDiv && left % right != 0 && (left > 0) == (right > 0));
      }
      left = result;
    }
    if (overflow) return fault("the result exceeds 64 bits");
  }
  return stack.back();
}

}  // namespace memscale::cost
