// Parsing of recorded calls. Needs the schemas of ATen; destroys nothing.
#include "tests/unit/capture/recorded_calls.h"

#include <ATen/ATen.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace memscale::shapes {
namespace {

const std::map<std::string, c10::ScalarType>& dtypes() {
  static const std::map<std::string, c10::ScalarType> table = {
      {"f32", c10::kFloat}, {"f64", c10::kDouble}, {"f16", c10::kHalf}, {"bf16", c10::kBFloat16}, {"i64", c10::kLong},
      {"i32", c10::kInt},   {"i16", c10::kShort},  {"i8", c10::kChar},  {"u8", c10::kByte},       {"bool", c10::kBool},
      {"c64", c10::kComplexFloat}, {"c128", c10::kComplexDouble}, {"u64", c10::kUInt64}};
  return table;
}

std::vector<int64_t> integers(const std::string& text) {
  std::vector<int64_t> values;
  std::stringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) values.push_back(std::stoll(item));
  return values;
}

std::optional<RecordedTensor> parse_tensor(const std::string& token) {
  const size_t open = token.find('['), close = token.find(']');
  if (token[0] == '"' || open == std::string::npos || close == std::string::npos) return std::nullopt;
  RecordedTensor tensor;
  std::string name = token.substr(0, open);
  if (name.back() == 'h') {
    tensor.host = true;
    name.pop_back();
  }
  tensor.dtype = dtypes().at(name);
  std::vector<std::string> fields(1);
  for (size_t i = open + 1; i < close; ++i) {
    if (token[i] == '|')
      fields.emplace_back();
    else
      fields.back() += token[i];
  }
  tensor.sizes = integers(fields.at(0));
  tensor.strides = integers(fields.at(1));
  tensor.offset = std::stoll(fields.at(2));
  tensor.storage_bytes = std::stoll(fields.at(3));
  tensor.storage = std::stoi(fields.at(4));
  if (close + 1 < token.size()) tensor.contents = integers(token.substr(close + 2));
  return tensor;
}

RecordedValue parse_value(std::istringstream& stream, std::string token) {
  RecordedValue value;
  if (token == "(") {
    value.list.emplace();
    while (stream >> token && token != ")") value.list->push_back(parse_value(stream, token));
    return value;
  }
  while (token[0] == '"' && (token.size() == 1 || token.back() != '"')) {  // a string with blanks
    std::string more;
    if (!(stream >> more)) throw std::runtime_error("unterminated string");
    token += " " + more;
  }
  value.tensor = parse_tensor(token);
  value.text = std::move(token);
  return value;
}

c10::Scalar parse_number(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (text[0] == 'd') return std::stod(text.substr(1));
  if (text[0] == 'c') {
    const size_t comma = text.find(',');
    return c10::complex<double>(std::stod(text.substr(1, comma - 1)), std::stod(text.substr(comma + 1)));
  }
  return int64_t{std::stoll(text)};
}

/// Numbers in (0, 1), the diagonal of the last two dimensions above the sum of its row: kernels of linear algebra accept it.
void fill(const at::Tensor& whole, const at::Tensor& view, const RecordedTensor& recorded) {
  if (!recorded.contents.empty()) {
    const at::Tensor values = at::tensor(recorded.contents, c10::kLong).view(recorded.sizes).to(recorded.dtype);
    for (int64_t i = 0; i < view.numel(); ++i) {  // operands may overlap (expanded ones)
      int64_t rest = i, offset = recorded.offset;
      for (int64_t d = view.dim() - 1; d >= 0; --d) {
        offset += rest % view.size(d) * view.stride(d);
        rest /= view.size(d);
      }
      whole.select(0, offset).copy_(values.reshape({-1}).select(0, i));
    }
    return;
  }
  if (at::isIntegralType(recorded.dtype, true)) {
    whole.zero_();
    return;
  }
  whole.copy_(at::arange(whole.numel(), at::kDouble).mul_(0.6180339887).frac_().mul_(0.8).add_(0.1));
  if (view.dim() >= 2 && view.numel() > 0 && view.is_non_overlapping_and_dense())
    view.diagonal(0, -2, -1).add_(static_cast<double>(view.size(-1)));
}

}  // namespace

std::vector<RecordedCall> read_calls(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path + ": expected the recorded calls of tests/data/shapes");
  std::vector<RecordedCall> calls;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    RecordedCall call;
    call.line = line;
    std::istringstream stream(line);
    try {
      stream >> call.name;
      bool after = false;
      for (std::string token; stream >> token;) {
        if (token == "->")
          after = true;
        else
          (after ? call.results : call.arguments).push_back(parse_value(stream, token));
      }
    } catch (const std::exception& error) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + error.what() + ": " + line);
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

at::Tensor Materializer::tensor(const RecordedTensor& recorded) {
  const c10::Device device = recorded.host && recorded.sizes.empty() ? c10::Device(c10::kCPU) : device_;
  const bool fresh = storages_.count(recorded.storage) == 0;
  if (fresh) {
    const at::Tensor bytes = at::empty({recorded.storage_bytes}, at::device(device).dtype(c10::kByte));
    if (device.is_cpu()) bytes.zero_();
    storages_.emplace(recorded.storage, bytes.storage());
  }
  const c10::Storage& storage = storages_.at(recorded.storage);
  const auto options = at::device(device).dtype(recorded.dtype);
  at::Tensor view = at::empty({0}, options);
  view.set_(storage, recorded.offset, recorded.sizes, recorded.strides);
  if (fresh && device.is_cpu()) {
    at::Tensor whole = at::empty({0}, options);
    const int64_t count = recorded.storage_bytes / static_cast<int64_t>(view.element_size());
    whole.set_(storage, 0, {count}, {1});
    fill(whole, view, recorded);
  }
  return view;
}

c10::IValue Materializer::value(const RecordedValue& recorded, const c10::Type& type) {
  if (recorded.tensor) return tensor(*recorded.tensor);
  if (recorded.text == "-") return type.kind() == c10::TypeKind::TensorType ? c10::IValue(at::Tensor()) : c10::IValue();
  if (type.kind() == c10::TypeKind::OptionalType) return value(recorded, *type.castRaw<c10::OptionalType>()->getElementType());
  if (recorded.list) {
    const c10::TypePtr element = type.castRaw<c10::ListType>()->getElementType();
    c10::impl::GenericList list(element);
    for (const RecordedValue& item : *recorded.list) list.push_back(value(item, *element));
    return list;
  }
  const std::string& text = recorded.text;
  switch (type.kind()) {
    case c10::TypeKind::TensorType: {
      at::Tensor number = c10::scalar_to_tensor(parse_number(text));
      number.unsafeGetTensorImpl()->set_wrapped_number(true);
      return number;
    }
    case c10::TypeKind::FloatType:
      return parse_number(text).toDouble();
    case c10::TypeKind::BoolType:
      return text == "true";
    case c10::TypeKind::StringType:
      return text.substr(1, text.size() - 2);
    case c10::TypeKind::DeviceObjType:
      return device_;
    default:
      return c10::IValue(parse_number(text));
  }
}

torch::jit::Stack Materializer::arguments(const c10::OperatorHandle& op, const RecordedCall& call) {
  const auto& schema = op.schema().arguments();
  if (schema.size() != call.arguments.size())
    throw std::runtime_error(call.name + ": expected " + std::to_string(schema.size()) + " arguments, recorded " +
                             std::to_string(call.arguments.size()));
  torch::jit::Stack stack;
  for (size_t i = 0; i < schema.size(); ++i) {

    stack.push_back(value(call.arguments[i], *schema[i].type()));
  }
  return stack;
}

std::string Materializer::difference(const c10::IValue& result, const RecordedValue& recorded) {
  if (recorded.list) {
    if (!result.isTensorList()) return "no list of tensors";
    const auto tensors = result.toTensorVector();
    if (tensors.size() != recorded.list->size())
      return "a list of " + std::to_string(tensors.size()) + ", expected " + std::to_string(recorded.list->size());
    for (size_t i = 0; i < tensors.size(); ++i)
      if (std::string text = difference(tensors[i], (*recorded.list)[i]); !text.empty()) return "[" + std::to_string(i) + "] " + text;
    return {};
  }
  if (!recorded.tensor) {
    if (recorded.text == "-") return result.isNone() || (result.isTensor() && !result.toTensor().defined()) ? "" : "defined, expected undefined";
    if (result.isInt() || result.isDouble() || result.isBool()) {
      const c10::Scalar expected = parse_number(recorded.text);
      return c10::IValue(expected) == result ? "" : "not " + recorded.text;
    }
    return "no number";
  }
  if (!result.isTensor()) return "no tensor";
  const at::Tensor& tensor = result.toTensor();
  const RecordedTensor& expected = *recorded.tensor;
  if (!tensor.defined()) return "undefined, expected a tensor";
  if (tensor.device().type() != device_.type() && !expected.host) return c10::str("on ", tensor.device());
  std::string text;
  if (tensor.scalar_type() != expected.dtype) text += c10::str(" dtype ", tensor.scalar_type(), ", expected ", expected.dtype);
  if (tensor.sizes() != expected.sizes) text += c10::str(" sizes ", tensor.sizes(), ", expected ", c10::IntArrayRef(expected.sizes));
  if (tensor.strides() != expected.strides) text += c10::str(" strides ", tensor.strides(), ", expected ", c10::IntArrayRef(expected.strides));
  if (tensor.storage_offset() != expected.offset) text += c10::str(" offset ", tensor.storage_offset(), ", expected ", expected.offset);
  const auto bytes = static_cast<int64_t>(tensor.storage().nbytes());
  if (bytes != expected.storage_bytes) text += c10::str(" storage of ", bytes, " bytes, expected ", expected.storage_bytes);
  const auto [known, fresh] = storages_.try_emplace(expected.storage, tensor.storage());
  if (!known->second.is_alias_of(tensor.storage())) text += " shares no memory where the kernel's does";
  if (fresh) {
    for (const auto& [number, storage] : storages_)
      if (number != expected.storage && storage.is_alias_of(tensor.storage())) text += " shares memory where the kernel's does not";
  }
  return text;
}

}  // namespace memscale::shapes
