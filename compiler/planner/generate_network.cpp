// See generate_network.h. A tape of layers is written forward and read backward; gradients of a value are added as they come.
#include "compiler/planner/generate_network.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace memscale::planner {
namespace {

constexpr double kFlopsPerUs = 8e6;  // a graphics card of the paper's time, float32
constexpr double kBytesPerUs = 4e5;
constexpr double kLaunchUs = 4;

struct Image {
  int32_t value;
  int64_t channels, side;
};

class Tape {
 public:
  Tape(std::string_view name, int64_t batch) : batch_(batch) { p_.name = name; }

  int32_t input(int64_t bytes) { return storage(bytes, Role::kInput, true); }
  int32_t weight(int64_t bytes) { return storage(bytes, Role::kParameter, true); }
  int64_t batch() const { return batch_; }
  int64_t bytes(int32_t s) const { return p_.storages[s].bytes; }

  struct Layer {
    std::string name;
    std::vector<int32_t> inputs;  // activations and weights
    std::vector<int32_t> saved;   // of the inputs: what the backward op reads
    bool saves_output = false;
    int64_t side_bytes = 0;  // a second output that the backward op reads: a mask, indices, statistics
    bool inplace = false;    // may take over its first input
    double flops = 0;
  };

  int32_t layer(const Layer& layer, int64_t out_bytes) {
    Record r{layer, storage(out_bytes), layer.side_bytes > 0 ? storage(layer.side_bytes) : -1};
    double moved = static_cast<double>(out_bytes + layer.side_bytes);
    for (int32_t s : layer.inputs) moved += static_cast<double>(bytes(s));
    r.time = kLaunchUs + std::max(moved / kBytesPerUs, layer.flops / kFlopsPerUs);
    std::vector<int32_t> outputs{r.output};
    if (r.side >= 0) outputs.push_back(r.side);
    Op& op = add_op(layer.name, r.time, layer.inputs, outputs);
    if (layer.inplace && !p_.storages[layer.inputs[0]].resident) op.inplace.push_back({layer.inputs[0], r.output});
    tape_.push_back(std::move(r));
    return tape_.back().output;
  }

  // Layers over tensors of any shape.
  int32_t relu(int32_t x) { return layer({"relu", {x}, {}, true, 0, true}, bytes(x)); }
  int32_t pointwise(const char* name, int32_t x) { return layer({name, {x}, {}, true}, bytes(x)); }
  int32_t add(int32_t x, int32_t y) { return layer({"add", {x, y}, {}}, bytes(x)); }
  int32_t mul(int32_t x, int32_t y) { return layer({"mul", {x, y}, {x, y}}, bytes(x)); }
  int32_t dropout(int32_t x) { return layer({"dropout", {x}, {}, false, bytes(x) / 4}, bytes(x)); }
  int32_t cat(const std::vector<int32_t>& all) {
    int64_t sum = 0;
    for (int32_t s : all) sum += bytes(s);
    return layer({"cat", all, {}}, sum);
  }
  int32_t norm(int32_t x, int32_t w) { return layer({"norm", {x, w}, {x, w}, false, 4096}, bytes(x)); }
  int32_t linear(int32_t x, int32_t w, int64_t out_bytes) {
    // rows * in * out multiplications, from the three sizes.
    const double b = static_cast<double>(bytes(x)), o = static_cast<double>(out_bytes), k = static_cast<double>(bytes(w));
    return layer({"linear", {x, w}, {x, w}, false, 0, false, 2 * std::sqrt(b / 4 * (o / 4) * (k / 4))}, out_bytes);
  }

  // Layers over images.
  Image image(int64_t channels, int64_t side) { return {input(size(channels, side)), channels, side}; }
  Image conv(Image x, int64_t channels, int64_t kernel, int64_t stride = 1) {
    const int64_t side = x.side / stride;
    const int32_t w = weight(4 * channels * x.channels * kernel * kernel);
    const double flops = 2.0 * static_cast<double>(batch_ * side * side * channels * x.channels * kernel * kernel);
    return {layer({"conv", {x.value, w}, {x.value, w}, false, 0, false, flops}, size(channels, side)), channels, side};
  }
  Image conv_norm_relu(Image x, int64_t channels, int64_t kernel, int64_t stride = 1) {
    x = conv(x, channels, kernel, stride);
    x.value = relu(norm(x.value, weight(8 * channels)));
    return x;
  }
  Image pool(Image x) {
    const int64_t out = size(x.channels, x.side / 2);
    return {layer({"max_pool", {x.value}, {x.value}, false, 2 * out}, out), x.channels, x.side / 2};
  }
  Image upsample(Image x) { return {layer({"upsample", {x.value}, {}}, size(x.channels, 2 * x.side)), x.channels, 2 * x.side}; }
  Image cat(const std::vector<Image>& all) {
    std::vector<int32_t> values;
    int64_t channels = 0;
    for (const Image& i : all) {
      values.push_back(i.value);
      channels += i.channels;
    }
    return {cat(values), channels, all[0].side};
  }

  /// The loss of all `heads`, and the backward pass.
  Problem finish(const std::vector<int32_t>& heads) {
    std::vector<int32_t> partial;
    for (int32_t h : heads) partial.push_back(layer({"loss", {h}, {h}}, 512));
    const int32_t loss = storage(512, Role::kOutput);
    p_.storages[loss].keep = true;
    add_op("sum", kLaunchUs, partial, {loss});
    p_.border = static_cast<int32_t>(p_.ops.size());
    backward_ = true;
    const int32_t tangent = storage(512, Role::kTangent, true);
    for (int32_t s : partial) contribute(s, tangent);
    for (size_t i = tape_.size(); i-- > 0;) reverse(tape_[i]);
    for (size_t s = 0; s < p_.storages.size(); ++s)
      if (p_.storages[s].role == Role::kParameter && gradient(static_cast<int32_t>(s)) >= 0) {
        p_.storages[gradient_[s]].keep = true;
        p_.storages[gradient_[s]].role = Role::kGradient;
      }
    return std::move(p_);
  }

 private:
  struct Record {
    Layer layer;
    int32_t output, side;
    double time = 0;
  };

  int64_t size(int64_t channels, int64_t side) const { return 4 * batch_ * channels * side * side; }

  int32_t storage(int64_t bytes, Role role = Role::kActivation, bool resident = false) {
    const auto index = static_cast<int32_t>(p_.storages.size());
    p_.storages.push_back({"s" + std::to_string(index), (bytes + 511) / 512 * 512, role, resident, false});
    return index;
  }

  Op& add_op(const std::string& name, double time, std::vector<int32_t> inputs, std::vector<int32_t> outputs) {
    Op op;
    op.name = backward_ ? name + "_backward" : name;
    op.time_us = time;
    op.backward = backward_;
    for (auto* list : {&inputs, &outputs}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    p_.ops.push_back(std::move(op));
    return p_.ops.back();
  }

  int32_t& gradient(int32_t s) {
    if (static_cast<size_t>(s) >= gradient_.size()) gradient_.resize(s + 1, -1);
    return gradient_[s];
  }

  void contribute(int32_t s, int32_t g) {
    if (gradient(s) < 0) {
      gradient(s) = g;
      return;
    }
    const int32_t sum = storage(bytes(s));
    const double time = kLaunchUs + 3 * static_cast<double>(bytes(s)) / kBytesPerUs;
    add_op("accumulate", time, {gradient(s), g}, {sum}).inplace.push_back({gradient(s), sum});
    gradient(s) = sum;
  }

  void reverse(const Record& r) {
    const int32_t g = gradient(r.output);
    if (g < 0) return;
    std::vector<int32_t> inputs = r.layer.saved, outputs, targets;
    inputs.push_back(g);
    if (r.layer.saves_output) inputs.push_back(r.output);
    if (r.side >= 0) inputs.push_back(r.side);
    for (int32_t s : r.layer.inputs) {
      if (p_.storages[s].role == Role::kInput || std::count(targets.begin(), targets.end(), s)) continue;
      targets.push_back(s);
      outputs.push_back(storage(bytes(s)));
    }
    if (outputs.empty()) return;
    add_op(r.layer.name, r.layer.flops > 0 ? 2 * r.time : 1.5 * r.time, inputs, outputs);
    for (size_t k = 0; k < targets.size(); ++k) contribute(targets[k], outputs[k]);
  }

  Problem p_;
  int64_t batch_;
  bool backward_ = false;
  std::vector<Record> tape_;
  std::vector<int32_t> gradient_;
};

Problem unet() {
  Tape t("unet", 6);
  Image x = t.image(3, 416);
  std::vector<Image> skips;
  int64_t channels = 64;
  for (int level = 0; level < 4; ++level, channels *= 2) {
    x = t.conv_norm_relu(t.conv_norm_relu(x, channels, 3), channels, 3);
    skips.push_back(x);
    x = t.pool(x);
  }
  x = t.conv_norm_relu(t.conv_norm_relu(x, channels / 2, 3), channels / 2, 3);
  for (int level = 4; level-- > 0;) {
    channels /= 2;
    x = t.cat({skips[level], t.upsample(x)});
    x = t.conv_norm_relu(t.conv_norm_relu(x, std::max<int64_t>(channels / 2, 64), 3), std::max<int64_t>(channels / 2, 64), 3);
  }
  return t.finish({t.conv(x, 1, 1).value});
}

Problem resnet() {
  Tape t("resnet32", 56 * 8);
  Image x = t.conv_norm_relu(t.image(3, 32), 16, 3);
  for (int64_t channels : {16, 32, 64})
    for (int block = 0; block < 5; ++block) {
      const int64_t stride = channels != x.channels ? 2 : 1;
      Image y = t.conv(t.conv_norm_relu(x, channels, 3, stride), channels, 3);
      y.value = t.norm(y.value, t.weight(8 * channels));
      const Image shortcut = stride == 2 ? t.conv(x, channels, 1, 2) : x;
      x = {t.relu(t.add(y.value, shortcut.value)), channels, y.side};
    }
  return t.finish({t.layer({"mean", {x.value}, {}}, 4 * t.batch() * 64)});
}

Problem transformer() {
  const int64_t batch = 10, tokens = 384, width = 512, heads = 8, hidden = 4 * batch * tokens * width;
  Tape t("transformer", batch);
  int32_t x = t.input(hidden);
  for (int i = 0; i < 12; ++i) {
    const int64_t square = 4 * width * width, scores = 4 * batch * heads * tokens * tokens;
    const int32_t q = t.linear(x, t.weight(square), hidden), k = t.linear(x, t.weight(square), hidden);
    const int32_t v = t.linear(x, t.weight(square), hidden);
    const double flops = 2.0 * static_cast<double>(batch * tokens * tokens * width);
    int32_t a = t.layer({"bmm", {q, k}, {q, k}, false, 0, false, flops}, scores);
    a = t.dropout(t.pointwise("softmax", a));
    const int32_t o = t.layer({"bmm", {a, v}, {a, v}, false, 0, false, flops}, hidden);
    x = t.norm(t.add(x, t.dropout(t.linear(o, t.weight(square), hidden))), t.weight(8 * width));
    const int32_t u = t.relu(t.linear(x, t.weight(4 * square), 4 * hidden));
    x = t.norm(t.add(x, t.dropout(t.linear(t.dropout(u), t.weight(4 * square), hidden))), t.weight(8 * width));
  }
  return t.finish({x});
}

Problem inception() {
  Tape t("inceptionv4", 64);
  Image x = t.conv_norm_relu(t.image(3, 150), 32, 3, 2);
  x = t.pool(t.conv_norm_relu(t.conv_norm_relu(x, 32, 3), 64, 3));
  for (const auto& [blocks, width] : {std::pair{4, 96}, std::pair{7, 192}, std::pair{3, 256}}) {
    x = t.conv_norm_relu(t.pool(x), 4 * width, 1);
    for (int i = 0; i < blocks; ++i) {
      const Image a = t.conv_norm_relu(x, width, 1);
      const Image b = t.conv_norm_relu(t.conv_norm_relu(x, width / 2, 1), width, 3);
      const Image c = t.conv_norm_relu(t.conv_norm_relu(t.conv_norm_relu(x, width / 2, 1), width, 3), width, 3);
      const Image pooled{t.layer({"avg_pool", {x.value}, {}}, t.bytes(x.value)), x.channels, x.side};
      x = t.cat({a, b, c, t.conv_norm_relu(pooled, width, 1)});
    }
  }
  return t.finish({t.layer({"mean", {x.value}, {}}, 4 * t.batch() * x.channels)});
}

Problem densenet() {
  Tape t("densenet", 84);
  Image x = t.pool(t.conv_norm_relu(t.image(3, 64), 64, 7, 2));
  for (int layers : {6, 12, 24, 16}) {
    for (int i = 0; i < layers; ++i) {
      Image y = x;
      y.value = t.relu(t.norm(x.value, t.weight(8 * x.channels)));
      x = t.cat({x, t.conv(t.conv_norm_relu(y, 128, 1), 32, 3)});
    }
    if (layers != 16) {
      x.value = t.relu(t.norm(x.value, t.weight(8 * x.channels)));
      x = t.pool(t.conv(x, x.channels / 2, 1));
    }
  }
  return t.finish({t.layer({"mean", {x.value}, {}}, 4 * t.batch() * x.channels)});
}

/// The weights of one cell: gates i, o, u, and one f for each state.
std::vector<int32_t> gates(Tape& t, int64_t hidden, int64_t in, int count) {
  std::vector<int32_t> all;
  for (int i = 0; i < count; ++i) all.push_back(t.weight(4 * hidden * in));
  return all;
}

/// One cell of an LSTM, the new (h, c). `w` as gates() gives them.
std::pair<int32_t, int32_t> cell(Tape& t, int32_t in, const std::vector<int32_t>& w, const std::vector<int32_t>& states) {
  const int64_t one = t.bytes(states[0]);
  const int32_t i = t.pointwise("sigmoid", t.linear(in, w[0], one)), o = t.pointwise("sigmoid", t.linear(in, w[1], one));
  int32_t c = t.mul(i, t.pointwise("tanh", t.linear(in, w[2], one)));
  for (size_t k = 0; k < states.size(); ++k) c = t.add(c, t.mul(t.pointwise("sigmoid", t.linear(in, w[3 + k], one)), states[k]));
  return {t.mul(o, t.pointwise("tanh", c)), c};
}

Problem lstm() {
  const int64_t hidden = 512, state = 4 * 128 * hidden;
  Tape t("lstm", 128);
  const auto w = gates(t, hidden, 2 * hidden, 4);
  int32_t h = t.input(state), c = t.input(state);
  for (int step = 0; step < 128; ++step) std::tie(h, c) = cell(t, t.cat({t.input(state), h}), w, {c});
  return t.finish({h});
}

Problem treelstm() {
  const int64_t hidden = 128, state = 4 * 64 * hidden;
  Tape t("treelstm", 64);
  const auto w = gates(t, hidden, 2 * hidden, 5), leaf = gates(t, hidden, hidden, 4);
  std::vector<std::pair<int32_t, int32_t>> level;
  for (int i = 0; i < 64; ++i) level.push_back(cell(t, t.input(state), leaf, {t.input(state)}));
  while (level.size() > 1) {
    std::vector<std::pair<int32_t, int32_t>> next;
    for (size_t i = 0; i < level.size(); i += 2)
      next.push_back(cell(t, t.cat({level[i].first, level[i + 1].first}), w, {level[i].second, level[i + 1].second}));
    level = std::move(next);
  }
  return t.finish({level[0].first});
}

Problem unrolled() {
  // A discriminator's steps in a row, each on what the last has left of its weights, as unrolled GANs differentiate through them.
  const int64_t hidden = 128, rows = 4 * 512 * hidden, square = 4 * hidden * hidden;
  Tape t("unroll_gan", 512);
  const int32_t real = t.input(rows);
  int32_t fake = t.linear(t.relu(t.linear(t.input(rows), t.weight(square), rows)), t.weight(square), rows);
  std::vector<int32_t> w;
  for (int i = 0; i < 3; ++i) w.push_back(t.pointwise("copy", t.weight(square)));
  std::vector<int32_t> heads;
  for (int step = 0; step < 12; ++step) {
    std::vector<int32_t> updates(3, -1);
    for (int32_t x : {real, fake}) {
      std::vector<int32_t> inputs;
      for (int i = 0; i < 3; ++i) {
        inputs.push_back(x);
        x = t.linear(x, w[i], rows);
        if (i < 2) x = t.relu(x);
      }
      int32_t g = t.pointwise("sigmoid", x);
      for (int i = 3; i-- > 0;) {
        const int32_t part = t.linear(inputs[i], g, square);
        updates[i] = updates[i] < 0 ? part : t.add(updates[i], part);
        if (i > 0) g = t.mul(t.linear(g, w[i], rows), inputs[i]);
      }
    }
    for (int i = 0; i < 3; ++i) w[i] = t.add(w[i], t.pointwise("scale", updates[i]));
  }
  int32_t x = fake;
  for (int i = 0; i < 3; ++i) x = t.relu(t.linear(x, w[i], rows));
  heads.push_back(x);
  return t.finish(heads);
}

}  // namespace

Problem generate_network(std::string_view name) {
  if (name == "unet") return unet();
  if (name == "resnet32") return resnet();
  if (name == "transformer") return transformer();
  if (name == "inceptionv4") return inception();
  if (name == "densenet") return densenet();
  if (name == "treelstm") return treelstm();
  if (name == "lstm") return lstm();
  if (name == "unroll_gan") return unrolled();
  return {};
}

}  // namespace memscale::planner
