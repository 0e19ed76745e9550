// A filter from arbitrary bytes: it is either one line that points into the text, or says something of any message.
// What follows a zero byte is the message's body.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "host/operate/content_document.hpp"
#include "host/operate/filter.hpp"

namespace {

namespace operate = sluice::operate;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  const std::string text = input.substr(0, end);
  sluice::queue::StoredMessage stored;
  stored.message.id = "A-1";
  stored.message.content_type = sluice::queue::kJson;
  stored.message.body = input.substr(std::min(end + 1, input.size()));
  stored.failure.error = stored.message.body;
  const auto filter = operate::Filter::parse(text);
  if (filter.has_error()) {
    require(filter.error().column >= 1 && filter.error().column <= text.size() + 1);
    require(!filter.error().message.empty() && filter.error().message.find('\n') == std::string::npos);
  } else {
    const bool matches = filter->matches(stored, {});
    require(filter->also(*filter).matches(stored, {}) == matches);
  }
  // The editor's document of any message is no edit.
  const auto edits = operate::content_edits(stored, operate::content_document(stored));
  require(edits.has_value() && edits->empty());
  static_cast<void>(operate::content_edits(stored, text));
  static_cast<void>(operate::parse_assignment(text));
  return 0;
}
