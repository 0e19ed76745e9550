#include "output.hpp"

#include <algorithm>

namespace {

constexpr std::size_t kMaxLine = 4096;
constexpr std::size_t kMaxTail = 1024;
constexpr int kTailLines = 5;

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) {
    line.remove_suffix(1);
  }
  return line;
}

}  // namespace

std::size_t OutputBudget::take(std::size_t size) {
  const std::size_t taken = std::min(size, left_);
  left_ -= taken;
  exceeded_ = exceeded_ || taken < size;
  return taken;
}

bool OutputBudget::just_exceeded() {
  const bool now = exceeded_ && !told_;
  told_ = exceeded_;
  return now;
}

void OutputStream::write(std::string_view bytes) {
  tail_.append(bytes.substr(bytes.size() - std::min(bytes.size(), kMaxTail)));
  tail_.erase(0, tail_.size() - std::min(tail_.size(), kMaxTail));
  if (!level_) {
    return;
  }
  bytes = bytes.substr(0, budget_.take(bytes.size()));
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    const std::size_t size = std::min({bytes.size(), newline, kMaxLine - line_.size()});
    line_ += bytes.substr(0, size);
    bytes.remove_prefix(size);
    if (size == newline) {
      bytes.remove_prefix(1);
      end_line();
    } else if (line_.size() == kMaxLine) {
      end_line();
    }
  }
  if (budget_.just_exceeded()) {
    context_.warn("output beyond " + std::to_string(budget_.limit()) +
                  " bytes is not logged; see the option output_limit");
  }
}

void OutputStream::end_line() {
  if (const std::string_view line = trimmed(line_); !line.empty()) {
    context_.log(*level_, line);
  }
  line_.clear();
}

void OutputStream::finish() {
  if (level_) {
    end_line();
  }
}

std::string OutputStream::tail() const {
  std::string result;
  std::string_view rest = tail_;
  for (int lines = 0; lines < kTailLines && !rest.empty();) {
    const std::size_t newline = rest.rfind('\n');
    const std::string_view line = trimmed(newline == std::string_view::npos ? rest : rest.substr(newline + 1));
    if (!line.empty()) {
      result = result.empty() ? std::string(line) : std::string(line) + " | " + result;
      ++lines;
    }
    rest = newline == std::string_view::npos ? std::string_view() : rest.substr(0, newline);
  }
  return result;
}
