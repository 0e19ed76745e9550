// Every way in which the file can be wrong: one clear line each, and nothing lost.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "host/stores/sqlite/schema.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using std::chrono_literals::operator""s;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class OpenTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<StoreDesk>> open(const std::string& path) {
    queue::SqliteOptions options;
    options.path = path;
    auto queues = queue::open_sqlite_queues(options, clock_, random_);
    if (!queues) {
      return queues.error();
    }
    return std::make_unique<StoreDesk>(std::move(*queues));
  }
  Error refused(const std::string& path) {
    auto store = open(path);
    if (store) {
      ADD_FAILURE() << path << " was opened";
      return {};
    }
    EXPECT_THAT(store.error().message(), Not(HasSubstr("\n")));
    return store.error();
  }
  void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  queue::SendStatus send(Desk& store, const std::string& id) {
    const queue::NewMessage message{.id = id, .body = "body of " + id};
    return store.send("orders", std::span(&message, 1), Deadline::never()).at(0).status;
  }
  ErrorCode send_error(Desk& store, const std::string& id, std::string* text = nullptr) {
    const queue::NewMessage message{.id = id, .body = "body of " + id};
    const auto results = store.send("orders", std::span(&message, 1), Deadline::after(clock_, 5s));
    EXPECT_EQ(results.at(0).status, queue::SendStatus::failed);
    if (text != nullptr) {
      *text = results[0].error.message();
    }
    return results[0].error.code();
  }

  TempFolder folder_;
  FakeClock clock_;
  SeededRandom random_{1};
};

TEST_F(OpenTest, WithoutDescriptorsNamesTheirLimit) {
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  int opened = 0;
  for (rlim_t most = 4; most < 40; ++most) {
    const struct rlimit limit { most, before.rlim_max };
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    const auto store = open(folder_.file("store.db"));
    ::setrlimit(RLIMIT_NOFILE, &before);
    opened += store ? 1 : 0;
    if (!store) {
      EXPECT_THAT(store.error().message(), HasSubstr("raise the limit on open files (ulimit -n)")) << most;
    }
  }
  EXPECT_GT(opened, 0);
  EXPECT_LT(opened, 36);
}

TEST_F(OpenTest, MakesFoldersAndFile) {
  const std::string path = folder_.file("var/lib/sluice.db");
  auto store = open(path);
  ASSERT_TRUE(store) << store.error().message();
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(OpenTest, KeepsWhatIsThere) {
  const std::string path = folder_.file("store.db");
  for (const std::string id : {"A-1", "A-2"}) {
    auto store = open(path);
    ASSERT_TRUE(store) << store.error().message();
    EXPECT_EQ(send(**store, id), queue::SendStatus::sent);
  }
  auto store = open(path);
  ASSERT_TRUE(store);
  EXPECT_EQ(all_ids(**store, "orders"), (std::vector<std::string>{"A-1", "A-2"}));
}

TEST_F(OpenTest, TakesSpecialNamesLiterally) {
  for (const std::string name : {"file:x?mode=memory", ":memory:", "with space", "größe 🙂", "100%"}) {
    auto store = open(folder_.file(name));
    ASSERT_TRUE(store) << name << ": " << store.error().message();
    EXPECT_EQ(send(**store, "A-1"), queue::SendStatus::sent);
    EXPECT_TRUE(std::filesystem::is_regular_file(folder_.path() / name)) << name;
  }
}

TEST_F(OpenTest, RefusesNoPath) { EXPECT_EQ(refused("").code(), ErrorCode::invalid); }

TEST_F(OpenTest, RefusesAFolder) {
  const Error error = refused(folder_.path().string());
  EXPECT_THAT(error.message(), HasSubstr("folder"));
}

TEST_F(OpenTest, RefusesAFolderThatIsAFile) {
  write(folder_.file("plain"), "x");
  const Error error = refused(folder_.file("plain/store.db"));
  EXPECT_EQ(error.code(), ErrorCode::denied);
  EXPECT_THAT(error.message(), HasSubstr("cannot make folder"));
}

TEST_F(OpenTest, RefusesAFolderThatCannotBeMade) {
  EXPECT_EQ(refused("/proc/no-such-folder/store.db").code(), ErrorCode::denied);
}

TEST_F(OpenTest, RefusesAFileThatIsNoDatabase) {
  const std::string path = folder_.file("notes.txt");
  const std::string text(5000, 'n');
  write(path, text);
  const Error error = refused(path);
  EXPECT_EQ(error.code(), ErrorCode::corrupt) << error.message();
  EXPECT_THAT(error.message(), HasSubstr("not a SQLite file"));
  EXPECT_EQ(bytes_of(path), text) << "it must be left as it was";
}

TEST_F(OpenTest, RefusesTheDatabaseOfAnotherProgram) {
  const std::string path = folder_.file("other.db");
  raw_sql(path, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1); PRAGMA user_version = 3");
  const std::string before = bytes_of(path);
  const Error error = refused(path);
  EXPECT_EQ(error.code(), ErrorCode::invalid);
  EXPECT_THAT(error.message(), HasSubstr("another program"));
  EXPECT_EQ(bytes_of(path), before);
  raw_sql(folder_.file("marked.db"), "PRAGMA application_id = 42");
  EXPECT_THAT(refused(folder_.file("marked.db")).message(), HasSubstr("another program"));
}

TEST_F(OpenTest, TablesOfTheUsersMayBeThereFirst) {
  const std::string path = folder_.file("store.db");
  raw_sql(path,
          "CREATE TABLE sending (a); CREATE TABLE leasing (a); CREATE TABLE removing (a); "
          "INSERT INTO sending VALUES (7)");
  auto store = open(path);
  ASSERT_TRUE(store) << store.error().message();
  EXPECT_EQ(send(**store, "A-1"), queue::SendStatus::sent);
  EXPECT_EQ((*store)->claim({"orders"}, 1, 30s, Deadline::never())->size(), 1U);
  EXPECT_EQ(raw_sql(path, "SELECT a FROM sending").at(0), "7");
}

TEST_F(OpenTest, ATableOfTheUsersWithANameOfOursIsSaidAndLeft) {
  const std::string path = folder_.file("store.db");
  raw_sql(path, "CREATE TABLE Sluice_Messages (a); INSERT INTO Sluice_Messages VALUES (7)");
  const Error error = refused(path);
  EXPECT_EQ(error.code(), ErrorCode::invalid);
  EXPECT_THAT(error.message(), HasSubstr("ALTER TABLE Sluice_Messages RENAME TO my_Sluice_Messages"));
  raw_sql(path, "ALTER TABLE Sluice_Messages RENAME TO my_messages");
  EXPECT_TRUE(open(path));
  EXPECT_EQ(raw_sql(path, "SELECT a FROM my_messages").at(0), "7");
}

// Without exception, so that no table of the users' is ever in the way.
TEST_F(OpenTest, AllOurNamesBeginAlike) {
  const std::string path = folder_.file("store.db");
  ASSERT_TRUE(open(path));
  EXPECT_EQ(raw_sql(path,
                    "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sluice\\_%' ESCAPE '\\' AND name "
                    "NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
                .at(0),
            "0");
}

TEST_F(OpenTest, RefusesAFileOfAnotherVersionAndLeavesItAsItIs) {
  const std::string path = folder_.file("store.db");
  ASSERT_TRUE(open(path));
  const std::string newer = std::to_string(queue::sqlite::kSchemaVersion + 1);
  const std::string ours = std::to_string(queue::sqlite::kApplicationId);
  const std::string earlier = std::to_string(queue::sqlite::kEarlierApplicationId);
  for (const auto& [application, version, mend] :
       {std::tuple(ours, newer, "schema version 2, this sluice knows 1; use the sluice that made it"),
        std::tuple(earlier, std::string("9"), "'sluice export'"), std::tuple(earlier, newer, "'sluice import'")}) {
    raw_sql(path, "PRAGMA application_id = " + application + "; PRAGMA user_version = " + version);
    const Error error = refused(path);
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_THAT(error.message(), HasSubstr(mend));
    EXPECT_EQ(raw_sql(path, "PRAGMA user_version").at(0), version);
  }
  raw_sql(path, "PRAGMA application_id = " + ours + "; PRAGMA user_version = 1");
  EXPECT_TRUE(open(path));
}

TEST_F(OpenTest, RefusesAFileOfABuildBeforeTheFirstRelease) {
  const std::string path = folder_.file("store.db");
  ASSERT_TRUE(open(path));
  raw_sql(path, "ALTER TABLE sluice_deliveries DROP COLUMN checkpoint");
  EXPECT_THAT(refused(path).message(), HasSubstr("was made before the first release; carry its messages over"));
}

TEST_F(OpenTest, AnEmptyFileIsANewStore) {
  write(folder_.file("store.db"), "");
  EXPECT_TRUE(open(folder_.file("store.db")));
}

TEST_F(OpenTest, RefusesADamagedFile) {
  const std::string path = folder_.file("store.db");
  {
    auto store = open(path);
    for (int i = 0; i < 200; ++i) {
      send(**store, "id" + std::to_string(i));
    }
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100);
  file << std::string(3996, '\x5A');
  file.close();
  const Error error = refused(path);
  EXPECT_EQ(error.code(), ErrorCode::corrupt) << error.message();
  EXPECT_THAT(error.message(), HasSubstr("backup"));
}

TEST_F(OpenTest, TheMendForADamagedFileMendsIt) {
  if (std::system("sqlite3 --version > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "sqlite3 is not installed here";
  }
  const std::string path = folder_.file("store.db");
  {
    auto store = open(path);
    for (int i = 0; i < 2000; ++i) {
      const queue::NewMessage message{.id = "id" + std::to_string(i), .body = std::string(500, 'x')};
      (*store)->send("orders", std::span(&message, 1), Deadline::never());
    }
  }
  // One page of messages.
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096 * 150);
  file << std::string(4096, '\xFF');
  file.close();
  std::string mend;
  {
    auto store = open(path);
    ASSERT_TRUE(store) << store.error().message();
    const auto claims = (*store)->claim({"orders"}, 2000, 30s, Deadline::never());
    ASSERT_FALSE(claims);
    mend = claims.error().message();
  }
  const std::size_t first = mend.find("sqlite3 /");
  const std::size_t then = mend.find(", then ");
  const std::size_t end = mend.find(", and put NEW");
  ASSERT_NE(end, std::string::npos) << mend;
  std::string commands = mend.substr(first, then - first) + " && " + mend.substr(then + 7, end - then - 7);
  for (std::size_t at = commands.find("NEW"); at != std::string::npos; at = commands.find("NEW", at + 1)) {
    commands.replace(at, 3, folder_.file("new.db"));
  }
  std::system((commands + " > /dev/null 2>&1").c_str());
  auto rescued = open(folder_.file("new.db"));
  ASSERT_TRUE(rescued) << rescued.error().message();
  const auto claims = (*rescued)->claim({"orders"}, 2000, 30s, Deadline::never());
  ASSERT_TRUE(claims) << claims.error().message();
  EXPECT_GT(claims->size(), 1900U);
  EXPECT_LT(claims->size(), 2000U);
}

TEST_F(OpenTest, AFullDiskAtTheStartIsWaitedForAndNoMistake) {
  // A child, for the limit stays with its process.
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    bool right = true;
    for (const rlim_t bytes : {0, 4'000, 20'000}) {
      const rlimit limit{bytes, RLIM_INFINITY};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      auto store = open(folder_.file("store" + std::to_string(bytes) + ".db"));
      right = right && !store && store.error().code() == ErrorCode::full;
    }
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(OpenTest, DamageFoundLaterIsAnErrorOfTheCall) {
  const std::string path = folder_.file("store.db");
  {
    auto store = open(path);
    for (int i = 0; i < 500; ++i) {
      send(**store, "id" + std::to_string(i));
    }
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  // Everything behind the schema.
  for (std::uintmax_t at = 4096 * 13; at < std::filesystem::file_size(path); at += 64) {
    file.seekp(static_cast<std::streamoff>(at));
    file << "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF";
  }
  file.close();
  auto store = open(path);
  if (!store) {
    EXPECT_EQ(store.error().code(), ErrorCode::corrupt) << store.error().message();
    return;
  }
  const auto claims = (*store)->claim({"orders"}, 500, 30s, Deadline::never());
  ASSERT_FALSE(claims);
  EXPECT_EQ(claims.error().code(), ErrorCode::corrupt) << claims.error().message();
}

TEST_F(OpenTest, AFileThatVanishesIsNoticedAndWorksAgainWhenPutBack) {
  const std::string path = folder_.file("store.db");
  auto store = open(path);
  ASSERT_TRUE(store);
  ASSERT_EQ(send(**store, "A-1"), queue::SendStatus::sent);
  std::filesystem::rename(path, path + ".away");
  std::string text;
  EXPECT_EQ(send_error(**store, "A-2", &text), ErrorCode::queue_missing);
  EXPECT_THAT(text, HasSubstr("removed or replaced"));
  const auto claims = (*store)->claim({"orders"}, 1, 30s, Deadline::never());
  ASSERT_FALSE(claims);
  EXPECT_EQ(claims.error().code(), ErrorCode::queue_missing);
  EXPECT_EQ((*store)->stats({"orders"}, Deadline::never()).error().code(), ErrorCode::queue_missing);
  write(path, "something else");
  EXPECT_EQ(send_error(**store, "A-2"), ErrorCode::queue_missing);
  std::filesystem::rename(path + ".away", path);
  EXPECT_EQ(send(**store, "A-2"), queue::SendStatus::sent);
  EXPECT_EQ(all_ids(**store, "orders"), (std::vector<std::string>{"A-1", "A-2"}));
}

/// Runs `work` in a child that has no rights beyond those of "nobody"; true when it returned true.
bool as_nobody(const std::function<bool()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool dropped = ::getuid() != 0 || (::setgid(65534) == 0 && ::setuid(65534) == 0);
    ::_exit(dropped && work() ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(OpenTest, RefusesAFolderThatCannotBeWritten) {
  std::filesystem::create_directory(folder_.path() / "locked");
  ::chmod(folder_.path().c_str(), 0755);
  ::chmod(folder_.file("locked").c_str(), 0555);
  EXPECT_TRUE(as_nobody([&] {
    auto store = open(folder_.file("locked/store.db"));
    return !store && store.error().code() == ErrorCode::denied &&
           store.error().message().find("cannot be written") != std::string::npos;
  }));
  EXPECT_TRUE(as_nobody([&] {
    auto store = open(folder_.file("locked/deeper/store.db"));
    return !store && store.error().code() == ErrorCode::denied;
  }));
  ::chmod(folder_.file("locked").c_str(), 0755);
}

TEST_F(OpenTest, AFileThatCannotBeWrittenCanBeLookedAt) {
  const std::string path = folder_.file("store.db");
  {
    auto store = open(path);
    ASSERT_EQ(send(**store, "A-1"), queue::SendStatus::sent);
  }
  const auto look = [&] {
    queue::SqliteOptions options;
    options.path = path;
    auto queues = queue::open_sqlite_queues(options, clock_, random_);
    if (!queues || (*queues)->open_source({"orders"}).error().code() != ErrorCode::denied ||
        (*queues)->open_sender("orders").error().code() != ErrorCode::denied) {
      return false;
    }
    auto looking = (*queues)->open_operator("orders");
    const queue::Change change{.id = "A-1"};
    return looking && (*looking)->get("A-1", Deadline::never()) &&
           (*looking)->stats({}, Deadline::never())->ready == 1U &&
           (*looking)->list({}, Deadline::never())->messages.size() == 1U &&
           (*looking)->change(std::span(&change, 1), Deadline::never())[0].error.code() == ErrorCode::denied;
  };
  ::chmod(path.c_str(), 0444);
  ::chmod(folder_.path().c_str(), 0755);
  EXPECT_TRUE(as_nobody(look)) << "in a folder of another's";
  ::chmod(folder_.path().c_str(), 0777);
  EXPECT_TRUE(as_nobody(look)) << "with nobody at work";
  // A host at work has both files beside it.
  ::chmod(path.c_str(), 0644);
  auto host = open(path);
  ASSERT_EQ(send(**host, "A-2"), queue::SendStatus::sent);
  ASSERT_TRUE((*host)->remove("orders", "A-2", Deadline::never()));
  ::chmod(folder_.path().c_str(), 0755);
  EXPECT_TRUE(as_nobody(look)) << "beside a host that works";
}

}  // namespace
}  // namespace sluice::test
