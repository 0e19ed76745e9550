#include "host/operate/copy.hpp"

#include <algorithm>
#include <utility>

#include "base/text/json_check.hpp"
#include "host/operate/record_json.hpp"

namespace sluice::operate {

namespace {

// Bodies are of any size up to the store's limit, so that the size of a page follows what the last one weighed.
constexpr std::size_t kLargestPage = 250;
constexpr std::size_t kHeavyPageBytes = 8UL * 1024 * 1024;
constexpr std::size_t kLightPageBytes = 1UL * 1024 * 1024;

constexpr std::size_t kBatchRecords = 500;
constexpr std::size_t kBatchBytes = 4UL * 1024 * 1024;
/// Inserting again is safe: what is there already is left alone.
constexpr int kTries = 3;

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
    bytes += payload_bytes(record);
  }
  if (bytes > kHeavyPageBytes) {
    page_size_ = std::max<std::size_t>(1, page_size_ / 4);
  } else if (bytes < kLightPageBytes) {
    page_size_ = std::min(kLargestPage, page_size_ * 2);
  }
  return {};
}

void Exporter::append(std::string& out) {
  const std::size_t full = out.size() + kStepBytes;
  while (next_ < page_.size() && out.size() < full && !enough()) {
    // Its memory goes as soon as it is written: a line may be six times as long as its body.
    const queue::StoredMessage record = std::move(page_[next_++]);
    if (options_.filter.matches(record, clock_.wall_now())) {
      append_record_line(out, record);
      ++exported_;
    }
  }
}

std::optional<Importer::Refusal> Importer::add(std::uint64_t line, std::string_view text) {
  if (json_trimmed(text).empty()) {
    return std::nullopt;
  }
  auto record = parse_record_line(text);
  if (!record) {
    return refuse(line, record.error().message());
  }
  if (!options_.keep_leases) {
    release(*record);
  }
  if (ids_.contains(record->message.id)) {
    second_ = std::move(*record);
    second_line_ = line;
    return std::nullopt;
  }
  take(line, std::move(*record));
  return std::nullopt;
}

Importer::Refusal Importer::refuse(std::uint64_t line, std::string reason) {
  ++counts_.refused;
  return {line, std::move(reason)};
}

bool Importer::full() const { return second_ || batch_.size() >= kBatchRecords || bytes_ >= kBatchBytes; }

void Importer::take(std::uint64_t line, queue::StoredMessage record) {
  bytes_ += payload_bytes(record);
  ids_.insert(record.message.id);
  batch_.push_back(std::move(record));
  lines_.push_back({line});
}

void Importer::release(queue::StoredMessage& record) const {
  if (record.state(clock_.wall_now()) == queue::MessageState::in_flight) {
    record.invisible_until.reset();
    ++record.version;
  }
}

Result<std::vector<Importer::Refusal>> Importer::flush(Deadline deadline) {
  std::vector<Refusal> refusals;
  do {
    std::optional<Error> failed;
    for (int tries = 0; tries < kTries && !batch_.empty(); ++tries) {
      failed = write_once(refusals, deadline);
      if (failed && failed->code() != ErrorCode::unknown_outcome) {
        break;
      }
    }
    if (failed && !batch_.empty()) {
      return std::move(*failed);
    }
    ids_.clear();
    bytes_ = 0;
    if (second_) {
      take(second_line_, std::move(*second_));
      second_.reset();
    }
  } while (!batch_.empty());
  return refusals;
}

/// Keeps what has to be written again. An error when any record failed for a reason that is not its own.
std::optional<Error> Importer::write_once(std::vector<Refusal>& refusals, Deadline deadline) {
  auto results = queue_.put(batch_, queue::PutMode::insert, deadline);
  queue::fill_up(results, batch_.size());
  std::optional<Error> failed;
  std::size_t kept = 0;
  for (std::size_t index = 0; index < results.size(); ++index) {
    const queue::PutResult& result = results[index];
    if (result.status == queue::PutStatus::written) {
      ++counts_.imported;
    } else if (result.status == queue::PutStatus::exists) {
      ++(lines_[index].may_be_there ? counts_.imported : counts_.existing);
    } else if (result.error.code() == ErrorCode::invalid) {
      ++counts_.refused;
      refusals.push_back({lines_[index].number, result.error.message()});
    } else {
      // A reason that a second try does not mend weighs more than one that it may.
      if (!failed || failed->code() == ErrorCode::unknown_outcome) {
        failed = result.error;
      }
      lines_[index].may_be_there |= result.error.code() == ErrorCode::unknown_outcome;
      std::swap(batch_[kept], batch_[index]);
      lines_[kept++] = lines_[index];
    }
  }
  batch_.resize(kept);
  lines_.resize(kept);
  return failed;
}

}  // namespace sluice::operate
