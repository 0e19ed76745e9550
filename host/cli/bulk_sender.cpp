#include "host/cli/bulk_sender.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/text/json_check.hpp"

namespace sluice::cli {

namespace {

/// One transaction, one sync of the disk.
constexpr std::size_t kSqliteBatch = 8000;
/// Twenty requests of 25 side by side.
constexpr std::size_t kDynamoDbBatch = 500;
/// A batch also ends at this many bytes, so that large bodies do not add up.
constexpr std::size_t kBatchBytes = 4UL * 1024 * 1024;
/// Input that brings nothing for so long has paused.
constexpr Duration kPause = std::chrono::milliseconds(5);

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace

BulkSender::BulkSender(Options options, SendRun run, queue::Sender& sender, QueueSession& session,
                       MessageTemplate& messages, Console& console)
    : stop_at_refusal_(!options.keep_going),
      run_(std::move(run)),
      batch_size_(session.place().in_sqlite() ? kSqliteBatch : kDynamoDbBatch),
      messages_(messages),
      console_(console),
      committer_(options, run_, sender, session, console) {}

Exit BulkSender::run(int input) {
  const InterruptFlag interrupt;
  LineReader reader(input, interrupt.descriptor());
  const LineReader::Status last = read(reader, interrupt);
  const int failure = errno;
  // What stood before a bad line is good, and is sent; what an interruption finds unsent stays unsent.
  const bool interrupted = interrupt.raised();
  if (!interrupted && !batch_.empty()) {
    pass_on();
  }
  committer_.finish(!interrupted);
  return finish(last, failure, interrupted);
}

LineReader::Status BulkSender::read(LineReader& reader, const InterruptFlag& interrupt) {
  LineReader::Status status = LineReader::Status::line;
  while (status == LineReader::Status::line && !interrupt.raised()) {
    if (full() && !pass_on()) {
      break;
    }
    if (!reader.ready(kPause)) {
      // Before it waits for input it must know that there is still something to wait for.
      if ((!batch_.empty() && !pass_on()) || !committer_.drain()) {
        break;
      }
    }
    std::string_view line;
    status = reader.next(line);
    if (status == LineReader::Status::line) {
      add(line);
    } else if (status == LineReader::Status::too_long) {
      refuse_long_line();
      status = LineReader::Status::line;
    }
    if (stop_at_refusal_ && !batch_.refusals.empty()) {
      break;
    }
  }
  return status;
}

bool BulkSender::full() const {
  return batch_.messages.size() + batch_.refusals.size() >= batch_size_ || batch_bytes_ >= kBatchBytes;
}

void BulkSender::add(std::string_view line) {
  ++line_;
  if (is_blank(line) || !run_.wants(line_)) {
    return;
  }
  auto message = messages_.from_json(line);
  if (message.has_error()) {
    const bool json = !json_problem(json_trimmed(line));
    batch_.refusals.push_back({line_, (json ? "" : "not JSON: ") + message.error().message()});
    return;
  }
  batch_bytes_ += line.size();
  batch_.messages.push_back(std::move(*message));
  batch_.lines.push_back(line_);
}

void BulkSender::refuse_long_line() {
  ++line_;
  if (run_.wants(line_)) {
    batch_.refusals.push_back({line_, "longer than " + std::to_string(LineReader::kMaxLine / 1024 / 1024) +
                                          " MiB, the most that a line may have; send a smaller message"});
  }
}

bool BulkSender::pass_on() {
  batch_bytes_ = 0;
  batch_.last_line = line_;
  const std::size_t count = batch_.messages.size();
  const bool goes_on = committer_.pass_on(std::exchange(batch_, {}));
  if (goes_on) {
    // The next one is likely to be as large.
    batch_.messages.reserve(count);
    batch_.lines.reserve(count);
  }
  return goes_on;
}

std::string BulkSender::so_far() const {
  std::string text = std::to_string(sent()) + (sent() == 1 ? " message was sent" : " messages were sent");
  if (committer_.existing() > 0) {
    text += ", " + std::to_string(committer_.existing()) + " of them before";
  }
  return text;
}

Exit BulkSender::unfinished(int code, std::vector<std::string> reasons, std::string summary, bool at_end) const {
  if (const LineRanges missing = committer_.missing(at_end); !missing.empty()) {
    summary += "; not stored are lines " + missing.text() + ": send the same input again with --resume " +
               committer_.token(at_end);
  }
  reasons.push_back(std::move(summary));
  return {code, std::move(reasons)};
}

Exit BulkSender::finish(LineReader::Status last, int failure, bool interrupted) {
  console_.end_progress();
  // An interruption ends the reading too, and says nothing of what was still to come.
  const bool at_end = !interrupted && last == LineReader::Status::end && committer_.committed() == line_;
  if (auto reasons = committer_.stopped_by(); !reasons.empty()) {
    return unfinished(kExitFailure, std::move(reasons), so_far(), at_end);
  }
  if (interrupted) {
    return unfinished(kExitInterrupted, {}, "interrupted; " + so_far(), at_end);
  }
  if (last == LineReader::Status::failed) {
    return unfinished(kExitFailure, {},
                      std::string("cannot read standard input: ") + std::strerror(failure) + "; " + so_far(), false);
  }
  if (committer_.refused() > 0) {
    return unfinished(kExitFailure, {},
                      so_far() + ", " + std::to_string(committer_.refused()) +
                          (committer_.refused() == 1 ? " line was passed over" : " lines were passed over"),
                      at_end);
  }
  return Exit::ok();
}

}  // namespace sluice::cli
