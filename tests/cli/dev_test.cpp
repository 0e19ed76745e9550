// `sluice dev`, by the real binary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;
using Words = std::vector<std::string>;

/// A folder with a build of the plugin in it, and one for what `dev` makes.
class BuildFolder : public HostFolder {
 public:
  BuildFolder() {
    build(SLUICE_DESK_PLUGIN);
    std::filesystem::create_directory(path() + "/tmp");
  }
  /// As a linker does, or `mv`.
  void build(const std::string& plugin) const {
    std::filesystem::copy_file(plugin, path() + "/new.so", std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(path() + "/new.so", path() + "/desk.so");
  }
  BinaryOptions options(const std::string& input = {}) const {
    BinaryOptions options;
    options.folder = path();
    options.input = input;
    options.environment = {{"TMPDIR", path() + "/tmp"}, {"TZ", "UTC"}};
    return options;
  }
  Finished dev(Words more, const std::string& input = {}) const {
    more.insert(more.begin(), {"dev", "--plugin", "desk.so"});
    return run_binary(more, options(input));
  }
  bool left_nothing() const { return std::filesystem::is_empty(path() + "/tmp"); }
};

/// Reads lines until one holds that; empty at the end of the output.
std::string line_with(RunningBinary& binary, const std::string& text) {
  std::string line;
  do {
    line = binary.read_line();
  } while (!line.empty() && line.find(text) == std::string::npos);
  return line;
}

TEST(Dev, WorksOffMessagesAndCountsThem) {
  const BuildFolder folder;
  const Finished ended = folder.dev({"--option", "tag=t"}, "hello\n\n\"text\"\n{\"n\": 1}\n");
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const auto lines = ended.out_lines();
  ASSERT_EQ(lines.size(), 8U) << ended.out;
  EXPECT_THAT(lines.front(), MatchesRegex("handler desk of desk.so 1.0.0, built [0-9:]+, on queue dev"));
  for (const std::string& line :
       {"m-1  info  t 1.0.0 hello", "m-2  info  t 1.0.0 text", "m-3  info  t 1.0.0 {\"n\": 1}"}) {
    EXPECT_THAT(lines, Contains(line));
  }
  EXPECT_THAT(lines, Contains(MatchesRegex("m-3  done in [0-9.]+[mu]s")));
  EXPECT_EQ(lines.back(), "-- done 3, retried 0, dead 0");
  EXPECT_EQ(ended.err, "");
  EXPECT_TRUE(folder.left_nothing());
}

TEST(Dev, RetriesByThePolicyAndTellsAScriptOfDeadLetters) {
  const BuildFolder folder;
  folder.write("messages", "soon\nreject\n");
  const Finished ended = folder.dev({"--option", "tag=t", "--messages", "messages"});
  EXPECT_EQ(ended.exit_code, 1) << "a message was dead-lettered";
  EXPECT_THAT(ended.out, HasSubstr("m-1  retry in "));
  EXPECT_THAT(ended.out, HasSubstr(", attempt 1, again in 1.0ms: once more\n"));
  EXPECT_THAT(ended.out, HasSubstr(", attempt 2\n"));
  EXPECT_THAT(ended.out, HasSubstr(", dead-lettered: never\n"));
  EXPECT_THAT(ended.out_lines().back(), "-- done 1, retried 1, dead 1");
  EXPECT_TRUE(folder.left_nothing());
}

TEST(Dev, GoesByAJobFile) {
  const BuildFolder folder;
  folder.write("acts.toml",
               "[job]\nqueue = \"acts\"\nhandler = \"desk\"\n[job.retry]\nmax_attempts = 1\n"
               "[job.options]\ntag = \"file's\"\n");
  const Finished ended = folder.dev({"--job", "acts.toml"}, "throw\n");
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.out, HasSubstr(", on queue acts\n"));
  EXPECT_THAT(ended.out, AllOf(HasSubstr("file's 1.0.0 throw\n"), HasSubstr("m-1  fault in "),
                               HasSubstr(", dead-lettered: it broke\n")));
}

TEST(Dev, TakesUpEachBuild) {
  const BuildFolder folder;
  RunningBinary running({"dev", "--plugin", "desk.so", "--option", "tag=t"}, folder.options());
  running.write("hello\n");
  EXPECT_EQ(line_with(running, "info"), "m-1  info  t 1.0.0 hello");
  folder.build(SLUICE_DESK_PLUGIN_2);
  EXPECT_THAT(line_with(running, "-- "), MatchesRegex("-- taken up desk.so, built [0-9:]+"));
  running.write("hello\n");
  EXPECT_EQ(line_with(running, "info"), "m-2  info  t 2.0.0 hello");
  folder.write("new.so", "not a plugin");
  std::filesystem::rename(folder.path() + "/new.so", folder.path() + "/desk.so");
  EXPECT_THAT(line_with(running, "-- "),
              AllOf(StartsWith("-- not taken up: "), HasSubstr("is not an ELF shared object"),
                    HasSubstr("version 2.0.0, which is loaded, stays in use")));
  running.write("hello\n");
  EXPECT_EQ(line_with(running, "info"), "m-3  info  t 2.0.0 hello");
  running.close_input();
  EXPECT_EQ(line_with(running, "-- "), "-- done 3, retried 0, dead 0");
  EXPECT_EQ(running.finish().exit_code, 0);
  EXPECT_TRUE(folder.left_nothing());
}

// As `cp` does, which empties the file that is there.
TEST(Dev, TakesUpABuildThatIsWrittenIntoTheFile) {
  const BuildFolder folder;
  RunningBinary running({"dev", "--plugin", "desk.so", "--option", "tag=t"}, folder.options());
  running.write("hello\n");
  EXPECT_EQ(line_with(running, "info"), "m-1  info  t 1.0.0 hello");
  std::filesystem::copy_file(SLUICE_DESK_PLUGIN_2, folder.path() + "/desk.so",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(line_with(running, "-- "), MatchesRegex("-- taken up desk.so, built [0-9:]+"));
  running.write("hello\n");
  EXPECT_EQ(line_with(running, "info"), "m-2  info  t 2.0.0 hello");
  folder.write("desk.so", "");
  EXPECT_THAT(line_with(running, "-- "), AllOf(StartsWith("-- not taken up: "), HasSubstr("is empty")));
  running.write("hello\n");
  EXPECT_EQ(line_with(running, "info"), "m-3  info  t 2.0.0 hello");
  running.close_input();
  EXPECT_EQ(line_with(running, "-- "), "-- done 3, retried 0, dead 0");
  EXPECT_EQ(running.finish().exit_code, 0);
  EXPECT_TRUE(folder.left_nothing());
}

TEST(Dev, CtrlCEndsItAtOnce) {
  const BuildFolder folder;
  RunningBinary running({"dev", "--plugin", "desk.so", "--option", "tag=t"}, folder.options());
  running.write("retry\n");
  EXPECT_THAT(line_with(running, "retry in"), HasSubstr("again in 7.00s: not now"));
  running.signal(SIGINT);
  EXPECT_EQ(line_with(running, "-- "), "-- done 0, retried 1, dead 0");
  EXPECT_EQ(running.finish().exit_code, 0);
  EXPECT_TRUE(folder.left_nothing());
}

TEST(Dev, SaysWhatIsWrongWithItsWords) {
  const BuildFolder folder;
  folder.write("text.so", "hello");
  const std::vector<std::pair<Words, std::string>> wrong{
      {{"dev"}, "--plugin is missing; write --plugin X.so"},
      {{"dev", "--plugin", "nowhere.so"}, "there is no plugin nowhere.so; build it, or mend the name"},
      {{"dev", "--plugin", "text.so"}, "is not an ELF shared object"},
      {{"dev", "--plugin", "desk.so"},
       "handler desk needs --option tag=VALUE, or --job FILE with a job file that says it: What its lines begin with"},
      {{"dev", "--plugin", "desk.so", "--option", "tag=refuse"}, "refuse is no tag"},
      {{"dev", "--plugin", "desk.so", "--handler", "dsk"}, "did you mean \"desk\"?"},
      {{"dev", "--plugin", "desk.so", "--option", "tag=t", "--messages", "nowhere"},
       "--messages nowhere: No such file or directory"},
      {{"dev", "--plugin", "desk.so", "--option", "tag=t", "--messages", "tmp"}, "--messages tmp: Is a directory"},
      {{"dev", "--plugin", "desk.so", "--option", "tag=t", "--concurrency", "0"}, "--concurrency"},
      {{"dev", "--plugin", "desk.so", "--job", "acts"}, "--job names a job file here"},
      {{"dev", "--plugin", "desk.so", "--job", "a.toml", "--queue", "q"},
       "--queue and --job exclude each other; give one"},
  };
  for (const auto& [words, said] : wrong) {
    const Finished refused = run_binary(words, folder.options());
    EXPECT_NE(refused.exit_code, 0) << said;
    EXPECT_THAT(refused.err + refused.out, HasSubstr(said));
    EXPECT_TRUE(folder.left_nothing()) << said;
  }
}

}  // namespace
}  // namespace sluice::test
