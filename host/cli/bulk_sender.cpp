#include "host/cli/bulk_sender.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>

namespace sluice::cli {

namespace {

/// One transaction, one sync of the disk.
constexpr std::size_t kSqliteBatch = 2000;
/// Twenty requests of 25 side by side.
constexpr std::size_t kDynamoDbBatch = 500;
/// A batch also ends at this many bytes, so that large bodies do not add up.
constexpr std::size_t kBatchBytes = 4UL * 1024 * 1024;
/// Input that brings nothing for so long has paused.
constexpr Duration kPause = std::chrono::milliseconds(5);
constexpr Duration kProgressInterval = std::chrono::milliseconds(200);

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace

Exit BulkSender::run(int input) {
  const InterruptFlag interrupt;
  LineReader reader(input, interrupt.descriptor());
  started_ = shown_ = session_.clock().steady_now();
  const bool embedded = session_.host().store_kind == config::StoreKind::sqlite;
  const std::size_t batch_size = embedded ? kSqliteBatch : kDynamoDbBatch;
  std::size_t bytes = 0;
  LineReader::Status status = LineReader::Status::line;
  bool going = true;
  while (going && status == LineReader::Status::line) {
    const bool full = batch_.size() >= batch_size || bytes >= kBatchBytes;
    if (full || (!batch_.empty() && !reader.ready(kPause))) {
      going = flush();
      bytes = 0;
      continue;
    }
    if (interrupt.raised()) {
      break;
    }
    std::string_view line;
    status = reader.next(line);
    if (status == LineReader::Status::line) {
      bytes += line.size();
      going = add(line);
    }
  }
  const int failure = errno;
  // What stood before a bad line is good, and is sent; what an interruption finds unsent stays unsent.
  const bool interrupted = interrupt.raised();
  if (!interrupted && console_.writable() && !batch_.empty()) {
    flush();
  }
  errno = failure;
  return finish(status, interrupted);
}

bool BulkSender::add(std::string_view line) {
  ++line_;
  if (is_blank(line)) {
    return true;
  }
  auto message = messages_.from_json(line);
  if (message.has_error()) {
    return refuse(line_, "not JSON: " + message.error().message());
  }
  batch_.push_back(std::move(*message));
  batch_lines_.push_back(line_);
  return true;
}

bool BulkSender::flush() {
  const auto results = session_.store().send(options_.queue, batch_, session_.deadline());
  bool going = true;
  ids_.clear();
  for (std::size_t index = 0; index < results.size(); ++index) {
    const queue::SendResult& result = results[index];
    if (result.status == queue::SendStatus::sent) {
      ++sent_;
      ids_ += result.id;
      ids_ += '\n';
      continue;
    }
    const bool duplicate = result.status == queue::SendStatus::duplicate_id;
    going =
        refuse(batch_lines_[index], duplicate ? "a message with that id is there already" : result.error.message()) &&
        going;
  }
  batch_.clear();
  batch_lines_.clear();
  console_.out(ids_);
  console_.flush();
  show_progress();
  return going && console_.writable();
}

bool BulkSender::refuse(std::uint64_t line, const std::string& why) {
  ++refused_;
  if (options_.keep_going) {
    console_.note("sluice send: line " + std::to_string(line) + ": " + why);
    return true;
  }
  if (stopped_by_.empty()) {
    stopped_by_ = "line " + std::to_string(line) + ": " + why;
  }
  return false;
}

std::string BulkSender::so_far() const {
  return std::to_string(sent_) + (sent_ == 1 ? " message was sent" : " messages were sent");
}

Exit BulkSender::finish(LineReader::Status last, bool interrupted) {
  console_.end_progress();
  if (!stopped_by_.empty()) {
    return Exit::failure(stopped_by_ + "; " + so_far() +
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
    return Exit::failure(std::string("cannot read standard input: ") + std::strerror(errno) + "; " + so_far());
  }
  if (refused_ > 0) {
    return Exit::failure(so_far() + ", " + std::to_string(refused_) + " lines were passed over");
  }
  return Exit::ok();
}

void BulkSender::show_progress() {
  const SteadyTime now = session_.clock().steady_now();
  if (now - shown_ < kProgressInterval) {
    return;
  }
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  console_.progress(std::to_string(sent_) + " sent, " +
                    std::to_string(static_cast<std::uint64_t>(static_cast<double>(sent_) / seconds)) + " a second");
}

}  // namespace sluice::cli
