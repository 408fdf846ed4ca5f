// "Did you mean …": the nearest of the known names. Needs and destroys nothing.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace memscale::driver {

/// Edits (insertion, removal, replacement, swap of neighbours) that turn `a` into `b`.
inline size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  std::iota(previous.begin(), previous.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, row);
  }
  return previous[b.size()];
}

/// The nearest known name; empty if none is near: at most a third of the longer name may differ. Ties go to the first.
template <class Names>
std::string nearest(std::string_view given, const Names& known) {
  std::string best;
  size_t best_distance = static_cast<size_t>(-1);
  for (std::string_view name : known) {
    const size_t distance = edit_distance(given, name);
    if (distance * 3 <= std::max(given.size(), name.size()) && distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

/// "did you mean 'budget'?" where a name is near, else "known: a, b, c".
template <class Names>
std::string suggestion(std::string_view given, const Names& known) {
  const std::string near = nearest(given, known);
  std::string all;
  for (std::string_view name : known) all += (all.empty() ? "" : ", ") + std::string(name);
  return near.empty() ? "known: " + all : "did you mean '" + near + "'? known: " + all;
}

}  // namespace memscale::driver
