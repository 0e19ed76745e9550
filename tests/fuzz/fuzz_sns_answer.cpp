// Answers of SNS, or of whatever stands in its place: the first byte chooses the status, the rest is the body.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "plugins/sns/protocol.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kEntries = 3;
  constexpr int kStatuses[] = {200, 204, 302, 400, 403, 429, 500, 503};
  if (size == 0) {
    return 0;
  }
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const sluice::dynamo::HttpResult answer =
      sluice::dynamo::HttpResponse{.status = kStatuses[data[0] % 8], .headers = {}, .body = body};
  const sns::BatchAnswer batch = sns::read_batch_answer(answer, kEntries);
  if (batch.results.size() != kEntries) {
    std::abort();
  }
  for (const auto& failure : batch.results) {
    if (failure && (failure->text().empty() || failure->text().find('\n') != std::string::npos)) {
      std::abort();
    }
  }
  static_cast<void>(sns::read_failure(answer));
  static_cast<void>(sns::read_topics(body));
  static_cast<void>(sns::tells_attributes(body));
  return 0;
}
