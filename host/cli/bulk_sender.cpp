#include "host/cli/bulk_sender.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

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

BulkSender::BulkSender(Options options, queue::Sender& sender, QueueSession& session, MessageTemplate& messages,
                       Console& console)
    : stop_at_refusal_(!options.keep_going),
      batch_size_(session.place().in_sqlite() ? kSqliteBatch : kDynamoDbBatch),
      messages_(messages),
      console_(console),
      committer_(std::move(options), sender, session, console) {}

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
      if (stop_at_refusal_ && !batch_.refusals.empty()) {
        break;
      }
    }
  }
  return status;
}

bool BulkSender::full() const {
  return batch_.messages.size() + batch_.refusals.size() >= batch_size_ || batch_bytes_ >= kBatchBytes;
}

void BulkSender::add(std::string_view line) {
  ++line_;
  if (is_blank(line)) {
    return;
  }
  auto message = messages_.from_json(line);
  if (message.has_error()) {
    batch_.refusals.push_back({line_, "not JSON: " + message.error().message()});
    return;
  }
  batch_bytes_ += line.size();
  batch_.messages.push_back(std::move(*message));
  batch_.lines.push_back(line_);
}

bool BulkSender::pass_on() {
  batch_bytes_ = 0;
  return committer_.pass_on(std::exchange(batch_, {}));
}

std::string BulkSender::so_far() const {
  return std::to_string(sent()) + (sent() == 1 ? " message was sent" : " messages were sent");
}

Exit BulkSender::finish(LineReader::Status last, int failure, bool interrupted) {
  console_.end_progress();
  if (const std::string& stopped_by = committer_.stopped_by(); !stopped_by.empty()) {
    return Exit::failure(stopped_by + "; " + so_far() +
                         "; mend it and send the rest, or pass over such with --keep-going");
  }
  if (interrupted) {
    return {kExitInterrupted, "interrupted; " + so_far()};
  }
  if (last == LineReader::Status::too_long) {
    return Exit::failure("line " + std::to_string(line_ + 1) + " is longer than " +
                         std::to_string(LineReader::kMaxLine / 1024 / 1024) + " MiB; " + so_far());
  }
  if (last == LineReader::Status::failed) {
    return Exit::failure(std::string("cannot read standard input: ") + std::strerror(failure) + "; " + so_far());
  }
  if (committer_.refused() > 0) {
    return Exit::failure(so_far() + ", " + std::to_string(committer_.refused()) +
                         (committer_.refused() == 1 ? " line was passed over" : " lines were passed over"));
  }
  return Exit::ok();
}

}  // namespace sluice::cli
