#include "host/operate/line_reader.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace sluice::operate {
namespace {

using Status = LineReader::Status;
using std::chrono::milliseconds;

/// A pipe to write lines into, and a reader at its other end.
class LineReaderTest : public testing::Test {
 protected:
  LineReaderTest() {
    EXPECT_EQ(::pipe(ends_), 0);
    stop_ = ::eventfd(0, EFD_NONBLOCK);
    reader_ = std::make_unique<LineReader>(ends_[0], stop_);
  }
  void TearDown() override {
    ::close(ends_[0]);
    end_input();
    ::close(stop_);
  }

  void put(std::string_view text) { EXPECT_EQ(::write(ends_[1], text.data(), text.size()), ssize_t(text.size())); }
  void end_input() {
    if (ends_[1] >= 0) {
      ::close(ends_[1]);
      ends_[1] = -1;
    }
  }
  void stop() {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(stop_, &one, sizeof(one)), ssize_t(sizeof(one)));
  }
  std::string next() {
    std::string_view line;
    EXPECT_EQ(reader_->next(line), Status::line);
    return std::string(line);
  }
  Status status() {
    std::string_view line;
    return reader_->next(line);
  }

  int ends_[2];
  int stop_;
  std::unique_ptr<LineReader> reader_;
};

TEST_F(LineReaderTest, GivesLinesAsTheyStand) {
  put("one\n\nthree \r\nlast");
  end_input();
  EXPECT_EQ(next(), "one");
  EXPECT_EQ(next(), "");
  EXPECT_EQ(next(), "three \r");
  EXPECT_EQ(next(), "last");
  EXPECT_EQ(status(), Status::end);
  EXPECT_EQ(status(), Status::end);
}

TEST_F(LineReaderTest, EmptyInputHasNoLine) {
  end_input();
  EXPECT_EQ(status(), Status::end);
}

TEST_F(LineReaderTest, JoinsPieces) {
  put("par");
  EXPECT_FALSE(reader_->ready(milliseconds(1)));
  put("t one\npart");
  EXPECT_TRUE(reader_->ready(milliseconds(1)));
  EXPECT_EQ(next(), "part one");
  EXPECT_FALSE(reader_->ready(milliseconds(1)));
  end_input();
  EXPECT_TRUE(reader_->ready(milliseconds(1)));
  EXPECT_EQ(next(), "part");
}

TEST_F(LineReaderTest, ManyLinesAcrossManyReads) {
  constexpr int kLines = 50'000;
  std::jthread writer([this] {
    std::string text;
    for (int line = 0; line < kLines; ++line) {
      text += "line " + std::to_string(line) + std::string(static_cast<std::size_t>(line % 97), 'x') + "\n";
      if (text.size() > 30'000 || line == kLines - 1) {
        std::string_view rest = text;
        while (!rest.empty()) {
          const auto count = ::write(ends_[1], rest.data(), rest.size());
          ASSERT_GT(count, 0);
          rest.remove_prefix(static_cast<std::size_t>(count));
        }
        text.clear();
      }
    }
    end_input();
  });
  for (int line = 0; line < kLines; ++line) {
    ASSERT_EQ(next(), "line " + std::to_string(line) + std::string(static_cast<std::size_t>(line % 97), 'x'));
  }
  EXPECT_EQ(status(), Status::end);
}

TEST_F(LineReaderTest, AStopEndsTheWait) {
  stop();
  EXPECT_EQ(status(), Status::stopped);
  EXPECT_TRUE(reader_->ready(milliseconds(1000))) << "a stop needs no patience";
}

TEST_F(LineReaderTest, RefusesALineWithoutEnd) {
  std::jthread writer([this] {
    const std::string piece(1 << 20, 'x');
    for (int round = 0; round < 18; ++round) {
      std::string_view rest = piece;
      while (!rest.empty()) {
        const auto count = ::write(ends_[1], rest.data(), rest.size());
        if (count <= 0) {
          return;
        }
        rest.remove_prefix(static_cast<std::size_t>(count));
      }
    }
  });
  EXPECT_EQ(status(), Status::too_long);
  // Takes what is left, so that the writer can end.
  std::string sink(1 << 20, ' ');
  std::jthread drain([this, &sink] {
    while (::read(ends_[0], sink.data(), sink.size()) > 0) {
    }
  });
  writer.join();
  end_input();
}

/// What a reader with a limit of four bytes says of the input: each line, "!" for one that is too long.
std::string with_limit_of_four(const std::string& input) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  EXPECT_EQ(::write(ends[1], input.data(), input.size()), static_cast<ssize_t>(input.size()));
  ::close(ends[1]);
  LineReader reader(ends[0], -1, 4);
  std::string told;
  std::string_view line;
  for (Status status = reader.next(line); status != Status::end; status = reader.next(line)) {
    told += status == Status::line ? std::string(line) : status == Status::too_long ? "!" : "?";
    told += ' ';
    if (status != Status::line && status != Status::too_long) {
      break;
    }
    EXPECT_TRUE(reader.ready(milliseconds(0)));
  }
  ::close(ends[0]);
  return told;
}

TEST(LineReader, GoesOnBehindALineThatIsTooLong) {
  EXPECT_EQ(with_limit_of_four("1234\n12345\nab\n"), "1234 ! ab ");
  EXPECT_EQ(with_limit_of_four("12345\n123456\n\nab"), "! !  ab ");
  EXPECT_EQ(with_limit_of_four("ab\n12345"), "ab ! ");
}

TEST_F(LineReaderTest, KeepsNothingOfALineThatIsTooLongAndTakesTheNext) {
  std::jthread writer([this] {
    const std::string piece(1 << 20, 'x');
    for (int round = 0; round < 18; ++round) {
      for (std::string_view rest = piece; !rest.empty();) {
        const auto count = ::write(ends_[1], rest.data(), rest.size());
        if (count <= 0) {
          return;
        }
        rest.remove_prefix(static_cast<std::size_t>(count));
      }
    }
    EXPECT_EQ(::write(ends_[1], "\nnext\n", 6), 6);
  });
  EXPECT_EQ(status(), Status::too_long);
  EXPECT_EQ(next(), "next");
  writer.join();
  end_input();
  EXPECT_EQ(status(), Status::end);
}

TEST(LineReader, ReportsWhatTheSystemRefuses) {
  const int folder = ::open("/", 0);
  LineReader reader(folder, -1);
  std::string_view line;
  EXPECT_EQ(reader.next(line), Status::failed);
  EXPECT_EQ(errno, EISDIR);
  ::close(folder);
}

}  // namespace
}  // namespace sluice::operate
