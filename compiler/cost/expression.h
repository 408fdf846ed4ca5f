// Integer arithmetic over the sizes of a call: "2 * threads * in1.size[-1] * 4".
//
//   sum     := product (('+' | '-') product)*
//   product := unary (('*' | '/') unary)*             '/' rounds towards zero
//   unary   := '-' unary | number | variable | ('max' | 'min' | 'ceil_div') '(' sum ',' sum ')' | '(' sum ')'
//   variable:= 'threads' | ('in' | 'out') index '.' ('bytes' | 'numel' | 'itemsize' | 'rank' | 'size' '[' integer ']')
//
// Parsing is limited in length and depth. Evaluation checks overflow, division by zero and missing tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/cost/shapes.h"
#include "compiler/support/error.h"

namespace memscale::cost {

class Expression {
 public:
  /// Errors give the column in `text`, from 1.
  static Expected<Expression> parse(std::string_view text);

  Expected<int64_t> evaluate(const OpDescription& op, int64_t threads) const;

 private:
  friend class ExpressionParser;
  enum class Code : uint8_t {
    kNumber,
    kThreads,
    kBytes,
    kNumel,
    kItemsize,
    kRank,
    kSize,
    kAdd,
    kSub,
    kMul,
    kDiv,
    kNeg,
    kMax,
    kMin,
    kCeilDiv
  };
  struct Step {
    Code code;
    bool output = false;
    int32_t tensor = 0;
    int64_t value = 0;  // the number, or the index of a size
  };
  std::string text_;
  std::vector<Step> steps_;  // postfix
};

}  // namespace memscale::cost
