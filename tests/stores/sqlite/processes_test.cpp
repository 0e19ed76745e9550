// Several processes on one file, and processes that are killed.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "tests/stores/sqlite/sqlite_rig.hpp"

namespace sluice::test {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using queue::Completion;

/// A child process that runs `work` and tells us lines; killed with the object if it has not ended.
class Child {
 public:
  using Tell = std::function<void(const std::string& line)>;

  explicit Child(const std::function<void(const Tell&)>& work) {
    int ends[2];
    if (::pipe(ends) != 0) {
      throw std::runtime_error("pipe");
    }
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      work([&](const std::string& line) {
        const std::string text = line + "\n";
        if (::write(ends[1], text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
          ::_exit(9);
        }
      });
      ::_exit(0);
    }
    ::close(ends[1]);
    input_ = ::fdopen(ends[0], "r");
  }
  ~Child() {
    kill();
    std::fclose(input_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// The next line; nothing when the child has ended.
  std::optional<std::string> line() {
    std::string text;
    for (int c = std::fgetc(input_); c != EOF; c = std::fgetc(input_)) {
      if (c == '\n') {
        return text;
      }
      text.push_back(static_cast<char>(c));
    }
    return std::nullopt;
  }
  void kill() {
    if (!ended_) {
      ::kill(pid_, SIGKILL);
      wait();
    }
  }
  /// True when it ended by itself, with success.
  bool wait() {
    int status = 0;
    ended_ = true;
    return ::waitpid(pid_, &status, 0) == pid_ && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  pid_t pid_ = -1;
  std::FILE* input_ = nullptr;
  bool ended_ = false;
};

class ProcessesTest : public ::testing::Test {
 protected:
  std::unique_ptr<StoreDesk> open() { return open_store(file_, clock_, random_); }
  void kill_at_any_moment(queue::Order order);

  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  SystemClock clock_;
  SeededRandom random_;
};

/// Sends, claims and settles for ever, and says before each settlement what it is about to do and after each call what
/// was answered: "+ id" accepted, "? id" about to be settled, "- id" settled.
void work_until_killed(Desk& store, queue::Order order, int generation, const Child::Tell& tell) {
  for (int round = 0;; ++round) {
    std::vector<queue::NewMessage> messages(7);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      messages[i].id = std::to_string(generation) + "-" + std::to_string(round) + "-" + std::to_string(i);
      messages[i].body.assign(300, 'x');
      // What those before have left at work holds up groups of its own.
      messages[i].group = std::to_string(generation) + "-" + std::to_string(i);
    }
    for (const auto& result : store.send("orders", messages, Deadline::never())) {
      if (result.status != queue::SendStatus::sent) {
        ::_exit(3);
      }
      tell("+ " + result.id);
    }
    const auto claims =
        store.source({"orders"}).claim({.max = 6, .visibility = 1h, .rules = {.order = order}}, Deadline::never());
    std::vector<Completion> settlements;
    for (const auto& claim : claims->deliveries) {
      settlements.push_back({.receipt = claim.receipt});
      tell("? " + claim.message.id);
    }
    // Some go another way than out; they must be there afterwards as well.
    settlements.front().action = round % 2 == 0 ? queue::CompletionAction::dead_letter : queue::CompletionAction::retry;
    const auto results = store.settle({"orders"}, settlements, Deadline::never());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const bool kept = settlements[i].action != queue::CompletionAction::remove;
      tell((kept ? "! " : "- ") + settlements[i].receipt.id);
    }
  }
}

void ProcessesTest::kill_at_any_moment(queue::Order order) {
  std::set<std::string> accepted;
  std::set<std::string> settled;
  std::set<std::string> unsure;
  for (int generation = 0; generation < 12; ++generation) {
    Child child([&](const Child::Tell& tell) {
      auto store = open();
      work_until_killed(*store, order, generation, tell);
    });
    // Another number of lines each time, so that the end comes at another step.
    const int lines = 40 + generation * 37;
    bool alive = true;
    const auto note = [&](const std::string& line) {
      const std::string id = line.substr(2);
      switch (line[0]) {
        case '+':
          accepted.insert(id);
          break;
        case '?':
          unsure.insert(id);
          break;
        case '-':
          settled.insert(id);
          unsure.erase(id);
          break;
        default:
          unsure.erase(id);
      }
    };
    for (int i = 0; i < lines && alive; ++i) {
      const auto line = child.line();
      alive = line.has_value();
      if (line) {
        note(*line);
      }
    }
    ASSERT_TRUE(alive) << "the child ended by itself";
    child.kill();
    for (auto line = child.line(); line; line = child.line()) {
      note(*line);
    }
    auto store = open();
    const auto ids = all_ids(*store, "orders");
    const std::set<std::string> there(ids.begin(), ids.end());
    for (const std::string& id : accepted) {
      EXPECT_TRUE(there.contains(id) || settled.contains(id) || unsure.contains(id)) << id << " was lost";
    }
    for (const std::string& id : settled) {
      EXPECT_FALSE(there.contains(id)) << id << " came back";
    }
    store.reset();
    ASSERT_EQ(broken_invariants(file_), std::vector<std::string>{});
  }
  EXPECT_GT(settled.size(), 100U);
}

TEST_F(ProcessesTest, KilledAtAnyMomentNothingAcceptedIsLost) { kill_at_any_moment(queue::Order::none); }
TEST_F(ProcessesTest, NorIsItOfGroups) { kill_at_any_moment(queue::Order::group); }

TEST_F(ProcessesTest, WritesThatFailForWantOfRoomLoseNothing) {
  open().reset();
  Child child([&](const Child::Tell& tell) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1'500'000, 1'500'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto store = open();
    for (int i = 0; i < 10'000; ++i) {
      const queue::NewMessage message{.id = "id" + std::to_string(i), .body = std::string(20'000, 'x')};
      const auto result = store->send("orders", std::span(&message, 1), Deadline::never()).at(0);
      if (result.status != queue::SendStatus::sent) {
        tell(std::string(to_string(result.error.code())));
        break;
      }
      tell("+ " + result.id);
    }
    // What is left to do with a full disk: look at the queue.
    tell(store->stats({"orders"}, Deadline::never()) ? "readable" : "not readable");
  });
  std::vector<std::string> accepted;
  auto line = child.line();
  for (; line && line->starts_with("+ "); line = child.line()) {
    accepted.push_back(line->substr(2));
  }
  EXPECT_EQ(line, "full");
  EXPECT_EQ(child.line(), "readable");
  EXPECT_GT(accepted.size(), 10U);
  child.wait();
  auto store = open();
  std::sort(accepted.begin(), accepted.end());
  EXPECT_EQ(all_ids(*store, "orders"), accepted);
  const queue::NewMessage message{.id = "after", .body = "x"};
  EXPECT_EQ(store->send("orders", std::span(&message, 1), Deadline::never())[0].status, queue::SendStatus::sent);
  store.reset();
  EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
}

TEST_F(ProcessesTest, ManyOpenANewFileAtOnce) {
  // Many rounds: what goes wrong here goes wrong within microseconds.
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Child>> children;
    children.reserve(6);
    for (int i = 0; i < 6; ++i) {
      children.push_back(std::make_unique<Child>([&, i](const Child::Tell& tell) {
        auto store = open();
        const queue::NewMessage message{.id = "of " + std::to_string(i), .body = "x"};
        const auto results = store->send("orders", std::span(&message, 1), Deadline::never());
        tell(results[0].status == queue::SendStatus::sent ? "sent" : results[0].error.message());
      }));
    }
    for (auto& child : children) {
      EXPECT_EQ(child->line(), "sent");
      EXPECT_TRUE(child->wait());
    }
    EXPECT_EQ(all_ids(*open(), "orders").size(), 6U);
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove(file_ + suffix);
    }
  }
}

TEST_F(ProcessesTest, TwoHostsAndASenderShareAQueueWithoutSharingAMessage) {
  constexpr std::size_t kMessages = 600;
  auto store = open();
  const auto host = [&](const Child::Tell& tell) {
    auto mine = open();
    for (bool ended = false; !ended;) {
      const auto claims = mine->claim({"orders"}, 10, 1h, Deadline::never());
      if (!claims) {
        ::_exit(4);
      }
      std::vector<Completion> settlements;
      for (const auto& claim : *claims) {
        settlements.push_back({.receipt = claim.receipt});
        if (!claim.message.id.starts_with("end")) {
          tell(claim.message.id);
        } else if (ended) {
          settlements.back().action = queue::CompletionAction::release;
        } else {
          ended = true;
        }
      }
      for (const auto& result : mine->settle({"orders"}, settlements, Deadline::never())) {
        if (result.status != queue::SettleStatus::applied) {
          ::_exit(5);
        }
      }
    }
  };
  // The children must not inherit a connection: SQLite forbids it.
  store.reset();
  Child first(host);
  Child second(host);
  store = open();
  for (std::size_t i = 0; i < kMessages; i += 20) {
    std::vector<queue::NewMessage> batch(20);
    for (std::size_t n = 0; n < batch.size(); ++n) {
      batch[n].id = std::to_string(i + n);
    }
    for (const auto& result : store->send("orders", batch, Deadline::after(clock_, 60s))) {
      ASSERT_EQ(result.status, queue::SendStatus::sent) << result.error.message();
    }
  }
  // One for each host; who gets both gives one back.
  const std::vector<queue::NewMessage> ends{{.id = "end 1"}, {.id = "end 2"}};
  ASSERT_EQ(store->send("orders", ends, Deadline::never()).back().status, queue::SendStatus::sent);
  std::map<std::string, int> claimed;
  for (Child* child : {&first, &second}) {
    for (auto line = child->line(); line; line = child->line()) {
      ++claimed[*line];
    }
    EXPECT_TRUE(child->wait());
  }
  EXPECT_EQ(claimed.size(), kMessages);
  EXPECT_TRUE(std::all_of(claimed.begin(), claimed.end(), [](const auto& entry) { return entry.second == 1; }));
}

}  // namespace
}  // namespace sluice::test
