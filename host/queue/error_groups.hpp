#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "host/queue/stored_message.hpp"

namespace sluice::queue {

/// An error's text without what differs from one failure to the next: `#` for numbers, `<id>`, `<hex>`, `<uuid>`,
/// `<address>`, `<path>` and `<time>` for what they name, one space for each gap. Of its first line, and no more than
/// a few hundred bytes of that. Folding a folded text gives it back.
std::string folded_error(std::string_view error);

/// The short name of all errors that are folded to the same text: eight hexadecimal digits, the same on every machine.
std::string fingerprint_of(std::string_view error);

/// True for a text that `fingerprint_of` may have given.
bool is_fingerprint(std::string_view text);

/// Groups failures by their fingerprints as it is told of them, for a store's overview. A value; not thread-safe.
class ErrorGroups {
 public:
  /// Most causes that are told apart; what fails for yet other reasons is counted, and left out of the groups.
  static constexpr std::size_t kMost = 10'000;

  /// `now` is what the hours of a group count back from.
  explicit ErrorGroups(WallTime now) : now_(now) {}

  void add(const std::string& id, const Failure& failure);
  /// The most frequent `limit` groups first; among equals the one that failed last. What stands in no group of the list
  /// is counted in `unlisted`.
  std::vector<ErrorGroup> finish(std::size_t limit, std::uint64_t& unlisted) &&;

 private:
  WallTime now_;
  std::unordered_map<std::string, ErrorGroup> groups_;  ///< by folded text
  std::uint64_t beyond_ = 0;                            ///< failures of causes beyond the limit
};

}  // namespace sluice::queue
