#include "reach.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace sns {
namespace {

/// Whether whoever asks is refused, whatever is asked.
bool is_about_the_caller(std::string_view code) {
  constexpr std::array<std::string_view, 4> kCodes = {"InvalidClientTokenId", "SignatureDoesNotMatch",
                                                      "IncompleteSignature", "MissingAuthenticationToken"};
  return says_expired(code) || std::find(kCodes.begin(), kCodes.end(), code) != kCodes.end();
}

}  // namespace

Reach::Reach(sluice::Host host, const std::string& where) : host_(host), where_("SNS at " + where) {
  show(true, where_ + ", not asked yet");
}

void Reach::told(const std::optional<Failure>& failure) {
  const bool fails = failure && (failure->unreachable || failure->temporary || is_about_the_caller(failure->code));
  // Any other refusal is an answer: of a topic or a message, not of SNS.
  show(!fails, fails ? where_ + ": " + failure->text() : where_ + " answers");
}

void Reach::show(bool works, std::string text) {
  const std::lock_guard lock(mutex_);
  if (std::pair now(works, std::move(text)); now != shown_) {
    shown_ = std::move(now);
    host_.health("broker", shown_.first, shown_.second);
  }
}

}  // namespace sns
