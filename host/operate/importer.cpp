#include "host/operate/importer.hpp"

#include <utility>

#include "host/operate/record_line.hpp"

namespace sluice::operate {

namespace {

constexpr std::size_t kBatchRecords = 500;
constexpr std::size_t kBatchBytes = 4UL * 1024 * 1024;
/// Inserting again is safe: what is there already is left alone.
constexpr int kTries = 3;

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace

std::optional<Importer::Refusal> Importer::add(std::uint64_t line, std::string_view text) {
  if (is_blank(text)) {
    return std::nullopt;
  }
  auto record = parse_record_line(text);
  if (!record) {
    ++counts_.refused;
    return Refusal{line, record.error().message()};
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

bool Importer::full() const { return second_ || batch_.size() >= kBatchRecords || bytes_ >= kBatchBytes; }

void Importer::take(std::uint64_t line, queue::StoredMessage record) {
  bytes_ += record.message.body.size() + record.native.size();
  ids_.insert(record.message.id);
  batch_.push_back(std::move(record));
  lines_.push_back(line);
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
  const auto results = queue_.put(batch_, queue::PutMode::insert, deadline);
  std::optional<Error> failed;
  std::size_t kept = 0;
  for (std::size_t index = 0; index < results.size(); ++index) {
    const queue::PutResult& result = results[index];
    if (result.status == queue::PutStatus::written) {
      ++counts_.imported;
    } else if (result.status == queue::PutStatus::exists) {
      ++counts_.existing;
    } else if (result.error.code() == ErrorCode::invalid) {
      ++counts_.refused;
      refusals.push_back({lines_[index], result.error.message()});
    } else {
      // A reason that a second try does not mend weighs more than one that it may.
      if (!failed || failed->code() == ErrorCode::unknown_outcome) {
        failed = result.error;
      }
      std::swap(batch_[kept], batch_[index]);
      lines_[kept++] = lines_[index];
    }
  }
  batch_.resize(kept);
  lines_.resize(kept);
  return failed;
}

}  // namespace sluice::operate
