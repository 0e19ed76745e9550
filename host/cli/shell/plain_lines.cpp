#include <unistd.h>

#include <cerrno>
#include <utility>

#include "host/cli/shell/line_source.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kMaxLine = 1024 * 1024;

class PlainLines final : public LineSource {
 public:
  PlainLines(int descriptor, std::function<void(const std::string& prompt)> show)
      : descriptor_(descriptor), show_(std::move(show)) {}

  TypedLine read(const std::string& prompt) override {
    show_(prompt);
    TypedLine line{.kind = TypedLine::Kind::text, .text = {}};
    char byte = 0;
    bool any = false;
    while (take(byte) && byte != '\n') {
      any = true;
      if (line.text.size() < kMaxLine) {
        line.text += byte;
      } else {
        line.kind = TypedLine::Kind::too_long;
      }
    }
    if (!any && byte != '\n') {
      return {};
    }
    if (!line.text.empty() && line.text.back() == '\r') {
      line.text.pop_back();
    }
    return line;
  }

  void remember(const std::string&) override {}

 private:
  bool take(char& byte) const {
    ssize_t count = 0;
    do {
      count = ::read(descriptor_, &byte, 1);
    } while (count < 0 && errno == EINTR);
    return count == 1;
  }

  int descriptor_;
  std::function<void(const std::string& prompt)> show_;
};

}  // namespace

std::unique_ptr<LineSource> make_plain_lines(int descriptor, std::function<void(const std::string& prompt)> show) {
  return std::make_unique<PlainLines>(descriptor, std::move(show));
}

}  // namespace sluice::cli
