#include "host/operate/exporter.hpp"

#include <algorithm>

#include "host/operate/record_line.hpp"

namespace sluice::operate {

namespace {

// Bodies are of any size up to the store's limit, so that the size of a page follows what the last one weighed.
constexpr std::size_t kLargestPage = 250;
constexpr std::size_t kHeavyPageBytes = 8UL * 1024 * 1024;
constexpr std::size_t kLightPageBytes = 1UL * 1024 * 1024;

}  // namespace

Result<bool> Exporter::step(std::string& out, Deadline deadline) {
  if (half_ >= options_.halves.size()) {
    return false;
  }
  const queue::ListRequest request{.address = {options_.queue, options_.halves[half_]},
                                   .limit = page_size_,
                                   .cursor = cursor_,
                                   .content = true,
                                   .native = true};
  auto page = store_.list(request, deadline);
  if (!page) {
    return page.error();
  }
  append(out, *page);
  cursor_ = std::move(page->next);
  if (cursor_.empty()) {
    ++half_;
  }
  const bool enough = options_.limit != 0 && exported_ >= options_.limit;
  return half_ < options_.halves.size() && !enough;
}

void Exporter::append(std::string& out, const queue::ListPage& page) {
  std::size_t bytes = 0;
  for (const queue::StoredMessage& record : page.messages) {
    if (options_.limit != 0 && exported_ >= options_.limit) {
      return;
    }
    ++looked_at_;
    bytes += record.message.body.size() + record.native.size();
    if (!options_.wanted || options_.wanted(record)) {
      append_record_line(out, record);
      ++exported_;
    }
  }
  adapt(bytes);
}

void Exporter::adapt(std::size_t bytes) {
  if (bytes > kHeavyPageBytes) {
    page_size_ = std::max<std::size_t>(1, page_size_ / 4);
  } else if (bytes < kLightPageBytes) {
    page_size_ = std::min(kLargestPage, page_size_ * 2);
  }
}

}  // namespace sluice::operate
