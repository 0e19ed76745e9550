#include "answer.hpp"

#include <algorithm>
#include <utility>

namespace {

constexpr std::size_t kShownBody = 200;

bool is_temporary(long status) {
  return status == 408 || status == 425 || status == 429 || (status >= 500 && status <= 599);
}

/// "HTTP 404: the first bytes of the body, on one line".
std::string describe(const Answer& answer) {
  std::string text = "HTTP " + std::to_string(answer.status);
  std::string shown = answer.body.substr(0, kShownBody);
  for (char& c : shown) {
    c = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  shown.erase(0, std::min(shown.find_first_not_of(' '), shown.size()));
  if (!answer.stray_redirect.empty()) {
    text += " (a redirect to " + answer.stray_redirect + ", which is another origin and gets nothing of the message)";
  } else if (answer.status >= 300 && answer.status <= 399) {
    text += " (a redirect that is not followed; see the option redirects)";
  }
  if (!shown.empty()) {
    text += ": " + shown + (answer.body.size() > kShownBody ? "..." : "");
  }
  return text;
}

}  // namespace

sluice::Outcome judge(const Answer& answer, std::chrono::nanoseconds retry_after_max) {
  if (answer.end == Answer::End::stopped) {
    return sluice::release();
  }
  if (answer.end == Answer::End::failed) {
    return sluice::retry(answer.error);
  }
  if (answer.status >= 200 && answer.status <= 299) {
    return sluice::done();
  }
  if (!is_temporary(answer.status)) {
    return sluice::reject(describe(answer));
  }
  if (answer.retry_after) {
    const auto limit = std::chrono::duration_cast<std::chrono::seconds>(retry_after_max);
    const std::chrono::nanoseconds delay =
        *answer.retry_after > limit ? retry_after_max : std::chrono::nanoseconds(*answer.retry_after);
    return sluice::retry(delay, describe(answer));
  }
  return sluice::retry(describe(answer));
}
