#pragma once

#include <string>
#include <string_view>
#include <vector>

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

}  // namespace sluice::cli
