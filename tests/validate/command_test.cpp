// The command: its options, its exit codes, what it says.
#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/validate/validated.hpp"

namespace sluice::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ValidateCommand, ShowsEachCheckAndASummary) {
  const HostFolder folder;
  const Finished text = folder.run({"plugin", "validate", fixture("noop"), "--seed", "7"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  const auto lines = text.out_lines();
  ASSERT_GE(lines.size(), 14U);
  EXPECT_EQ(lines[0], "pass  load");
  EXPECT_THAT(lines, Contains(StartsWith("pass  noop: create: 1000 times created and destroyed")));
  EXPECT_THAT(lines, Contains(StartsWith("pass  noop: concurrency: one instance serves all workers of a job")));
  EXPECT_THAT(lines, Contains(StartsWith("pass  noop: time: p50 ")));
  EXPECT_THAT(lines.back(), AllOf(StartsWith(fixture("noop") + " (noop 1.0.0): good, "),
                                  HasSubstr(", 0 errors, 0 warnings; --seed 7 repeats it")));
}

TEST(ValidateCommand, SaysWhatWhyAndTheMend) {
  const HostFolder folder;
  const Finished text = folder.run({"plugin", "validate", fixture("unknown_status")});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_EQ(text.err, "") << "the output has said it";
  EXPECT_THAT(text.out, AllOf(HasSubstr("FAIL  unknown_status: outcomes\n      error: `handle` reports an outcome"),
                              HasSubstr("\n        why: the host takes it for"), HasSubstr("\n        mend: report")));
  EXPECT_THAT(text.out, HasSubstr("NOT good"));
}

TEST(ValidateCommand, JsonHasFigures) {
  const Validated validated(fixture("noop"));
  EXPECT_TRUE(validated.report.at("good").as_bool());
  EXPECT_EQ(validated.report.at("plugin").as_string(), "noop");
  EXPECT_EQ(validated.report.at("seed").to_number<int>(), 7);
  EXPECT_LT(validated.report.at("seconds").to_number<double>(), 20);
  const auto& last = validated.report.at("checks").as_array();
  const auto time =
      std::find_if(last.begin(), last.end(), [](const auto& check) { return check.at("check") == "time"; });
  ASSERT_NE(time, last.end());
  EXPECT_EQ(time->at("figures").at("calls").to_number<int>(), 2000);
  EXPECT_GT(time->at("figures").at("p50_ns").to_number<int>(), 0);
}

TEST(ValidateCommand, TakesOptionsFromAFileOrAJob) {
  const HostFolder folder;
  folder.write("options.toml", "when_body = \"hello\"\n");
  folder.write("job.toml", "[job]\nqueue = \"q\"\nhandler = \"crashes\"\n[job.options]\nwhen_body = \"hello\"\n");
  for (const char* option : {"--options", "--job"}) {
    const std::string file = folder.path() + (option == std::string("--job") ? "/job.toml" : "/options.toml");
    const Validated validated(fixture("crashes"), {option, file});
    EXPECT_THAT(validated.findings(), ElementsAre(AllOf(StartsWith("stop: error: it ended the process by signal 6"),
                                                        HasSubstr("handle a plain message"))))
        << option << validated.err;
    EXPECT_EQ(validated.verdict("random"), "skip") << "a plain message crashes it";
  }
  EXPECT_EQ(Validated(fixture("crashes")).exit_code, 0) << "made up";
}

TEST(ValidateCommand, WhatCannotBeTriedIsExitCode2) {
  const HostFolder folder;
  folder.write("wrong.toml", "when_bdy = \"x\"\n");
  folder.write("broken.toml", "\nwhen_body = \n");
  const auto run = [&folder](std::vector<std::string> words) {
    words.insert(words.begin(), {"plugin", "validate"});
    const Finished finished = folder.run(words);
    EXPECT_EQ(finished.exit_code, 2) << finished.out << finished.err;
    EXPECT_EQ(finished.out.find("good"), std::string::npos);
    return finished.err;
  };
  EXPECT_EQ(run({"nowhere.so"}), "sluice plugin validate: nowhere.so: there is no such file\n");
  EXPECT_THAT(run({fixture("noop"), "--handler", "nop"}), HasSubstr("has no handler \"nop\"; it has: noop"));
  EXPECT_THAT(run({fixture("crashes"), "--options", "wrong.toml"}),
              AllOf(HasSubstr("wrong.toml:1:1: the handler \"crashes\" has no option \"when_bdy\"; did you mean"),
                    HasSubstr("needs the option")));
  folder.write("none.toml", "");
  EXPECT_THAT(run({fixture("kinds"), "--options", "none.toml"}),
              HasSubstr("the plugin has 4 handlers; say by --handler whose options these are"));
  EXPECT_THAT(run({fixture("crashes"), "--options", "broken.toml"}), HasSubstr("broken.toml:2:"));
  EXPECT_THAT(run({fixture("crashes"), "--options", "nowhere.toml"}), HasSubstr("nowhere.toml"));
}

TEST(ValidateCommand, RefusesAWrongCommandLine) {
  const HostFolder folder;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {}, {"a.so", "--seed", "x"}, {"a.so", "--options", "a", "--job", "b"}, {"a.so", "--step-limit", "1ms"}}) {
    std::vector<std::string> all{"plugin", "validate"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_EQ(folder.run(all).exit_code, 64) << words.size();
  }
}

TEST(ValidateCommand, SurvivesWhatIsNoPlugin) {
  const HostFolder folder;
  folder.write("text.so", "hello");
  folder.write("empty.so", "");
  std::filesystem::copy_file(fixture("noop"), folder.path() + "/cut.so");
  std::filesystem::resize_file(folder.path() + "/cut.so", 2000);
  std::filesystem::copy_file(fixture("noop"), folder.path() + "/arm.so");
  {
    std::fstream file(folder.path() + "/arm.so", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4);  // EI_CLASS: 32 bits
    file.write("\x01", 1);
    file.seekp(18);  // e_machine: ARM
    file.write("\x28\x00", 2);
  }
  const auto finding = [&folder](const std::string& name) {
    const auto lines = Validated(folder.path() + "/" + name).findings();
    EXPECT_EQ(lines.size(), 1U) << name;
    return lines.empty() ? std::string() : lines.front();
  };
  EXPECT_THAT(finding("text.so"), StartsWith("load: error: it is not an ELF shared object"));
  EXPECT_THAT(finding("empty.so"), StartsWith("load: error: it is empty"));
  EXPECT_THAT(finding("cut.so"), StartsWith("load: error: it is cut off or damaged"));
  EXPECT_THAT(finding("arm.so"), StartsWith("load: error: it is built for 32-bit ARM"));
  EXPECT_THAT(finding("plugins"), StartsWith("load: error: it is a folder"));
}

TEST(ValidateCommand, TakesAStrippedFile) {
  const HostFolder folder;
  const std::string file = folder.path() + "/stripped.so";
  ASSERT_EQ(std::system((std::string(SLUICE_STRIP) + " -o " + file + " " + fixture("noop")).c_str()), 0);
  const Validated validated(file);
  EXPECT_EQ(validated.exit_code, 0);
  EXPECT_THAT(validated.findings(), testing::IsEmpty());
}

TEST(ValidateCommand, CtrlCEndsItAtOnceAndLeavesNothingBehind) {
  const HostFolder folder;
  const std::string scratch = folder.path() + "/tmp";
  std::filesystem::create_directory(scratch);
  RunningBinary binary({"plugin", "validate", fixture("ignores_stop"), "--step-limit", "10m"},
                       {.input = {}, .folder = folder.path(), .environment = {{"TMPDIR", scratch}}});
  EXPECT_EQ(binary.read_line(), "pass  load");
  EXPECT_FALSE(std::filesystem::is_empty(scratch));
  binary.signal(SIGINT);
  const Finished ended = binary.finish();
  EXPECT_EQ(ended.exit_code, 130);
  EXPECT_EQ(ended.err, "sluice plugin validate: interrupted; nothing of the plugin is left running\n");
  EXPECT_TRUE(std::filesystem::is_empty(scratch));
}

TEST(ValidateCommand, ShowsOddNamesOfFilesAndBoundsOfOptions) {
  const HostFolder folder;
  folder.write("a\tb", "text");
  EXPECT_THAT(folder.run({"plugin", "validate", "a\tb"}).out_lines().back(), StartsWith("a\\tb: NOT good"));
  EXPECT_THAT(folder.run({"plugin", "validate", "a\tb", "--step-limit", "1ms"}).err,
              HasSubstr("--step-limit 1ms: write a time from 100ms to 10m"));
}

TEST(ValidateCommand, LeavesNothingBehind) {
  const HostFolder folder;
  const std::string scratch = folder.path() + "/tmp";
  std::filesystem::create_directory(scratch);
  // A made-up path is one in a folder of the validator's own.
  const Finished text = run_binary({"plugin", "validate", fixture("counts"), "--step-limit", "2s"},
                                   {.input = {}, .folder = folder.path(), .environment = {{"TMPDIR", scratch}}});
  EXPECT_EQ(text.exit_code, 0) << text.out;
  EXPECT_TRUE(std::filesystem::is_empty(scratch));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/made-up"));
}

}  // namespace
}  // namespace sluice::test
