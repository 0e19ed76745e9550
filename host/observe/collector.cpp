#include "host/observe/collector.hpp"

#include <algorithm>
#include <charconv>

namespace sluice::observe {

namespace {

constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
/// Longer than this nobody is left alone: it could be a mistake.
constexpr std::int64_t kLongestWaitSeconds = 3600;

}  // namespace

std::optional<Duration> retry_after(const dynamo::HttpResponse& response) {
  const std::string* text = response.header("retry-after");
  if (text == nullptr) {
    return std::nullopt;
  }
  std::int64_t seconds = 0;
  const char* end = text->data() + text->size();
  const auto [rest, failed] = std::from_chars(text->data(), end, seconds);
  if (failed != std::errc() || rest != end || seconds < 0) {
    return std::nullopt;
  }
  return std::chrono::seconds(std::min(seconds, kLongestWaitSeconds));
}

Judgement judge_status(const dynamo::HttpResult& result, std::initializer_list<int> again,
                       const std::string& credential) {
  if (!result) {
    return {Judgement::Kind::again, 0, std::nullopt, result.error().message};
  }
  const int status = result->status;
  if (status >= 200 && status < 300) {
    return {};
  }
  std::string why = "it answered " + std::to_string(status);
  if (std::find(again.begin(), again.end(), status) != again.end()) {
    return {Judgement::Kind::again, 0, retry_after(*result), std::move(why)};
  }
  if (status == kUnauthorized || status == kForbidden) {
    why += "; is the " + credential + " right?";
  }
  return {Judgement::Kind::refused, 0, std::nullopt, std::move(why)};
}

}  // namespace sluice::observe
