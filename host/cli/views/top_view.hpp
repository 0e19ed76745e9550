#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "host/operate/top_model.hpp"

namespace sluice::cli {

/// Makes keys of the bytes that a terminal sends, which cuts them where it likes. Of one thread.
class TopKeys {
 public:
  /// The keys that are whole. The beginning of another is kept.
  std::vector<operate::TopKey> take(std::string_view bytes);
  /// Something is kept that is a key of its own when nothing follows it: Escape.
  bool waits() const { return !kept_.empty(); }
  /// Nothing has followed.
  std::vector<operate::TopKey> give_up();

 private:
  std::string kept_;
};

/// How a picture is to be drawn. A value.
struct TopFrame {
  std::size_t columns = 80;
  std::size_t rows = 24;  ///< 0: as many as it takes, and nothing about keys
  bool colours = false;
  WallTime now{};
  std::string every;  ///< "2s"; empty: one picture
  std::string cost;   ///< what looking costs; empty: nothing
};

/// The picture: lines that fit into the frame, no more than it has rows. A pure function.
std::vector<std::string> draw_top(const operate::TopModel& model, const TopFrame& frame);

}  // namespace sluice::cli
