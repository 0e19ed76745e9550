#include "host/operate/exporter.hpp"

#include <algorithm>
#include <utility>

#include "host/operate/record_line.hpp"

namespace sluice::operate {

namespace {

// Bodies are of any size up to the store's limit, so that the size of a page follows what the last one weighed.
constexpr std::size_t kLargestPage = 250;
constexpr std::size_t kHeavyPageBytes = 8UL * 1024 * 1024;
constexpr std::size_t kLightPageBytes = 1UL * 1024 * 1024;

}  // namespace

Result<bool> Exporter::step(std::string& out, Deadline deadline) {
  if (next_ == page_.size()) {
    SLUICE_PASS_ON(list(deadline));
  }
  append(out);
  return !enough() && (next_ < page_.size() || half_ < options_.halves.size());
}

Result<void> Exporter::list(Deadline deadline) {
  page_.clear();
  next_ = 0;
  if (half_ >= options_.halves.size()) {
    return {};
  }
  const queue::ListRequest request{.half = options_.halves[half_],
                                   .limit = page_size_,
                                   .cursor = cursor_,
                                   .content = true,
                                   .native = true,
                                   .consistent = options_.consistent};
  SLUICE_TRY(page, queue_.list(request, deadline));
  page_ = std::move(page->messages);
  cursor_ = std::move(page->next);
  if (cursor_.empty()) {
    ++half_;
  }
  std::size_t bytes = 0;
  for (const queue::StoredMessage& record : page_) {
    bytes += record.message.body.size() + record.native.size();
  }
  adapt(bytes);
  return {};
}

void Exporter::append(std::string& out) {
  const std::size_t full = out.size() + kStepBytes;
  while (next_ < page_.size() && out.size() < full && !enough()) {
    // Its memory goes as soon as it is written: a line may be six times as long as its body.
    const queue::StoredMessage record = std::move(page_[next_++]);
    ++looked_at_;
    if (!options_.wanted || options_.wanted(record)) {
      append_record_line(out, record);
      ++exported_;
    }
  }
}

void Exporter::adapt(std::size_t bytes) {
  if (bytes > kHeavyPageBytes) {
    page_size_ = std::max<std::size_t>(1, page_size_ / 4);
  } else if (bytes < kLightPageBytes) {
    page_size_ = std::min(kLargestPage, page_size_ * 2);
  }
}

}  // namespace sluice::operate
