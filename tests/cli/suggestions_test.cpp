#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "host/cli/help.hpp"
#include "tests/cli/run_binary.hpp"

namespace sluice::test {
namespace {

using cli::suggest;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

Words suggested(const Words& words) {
  Words texts;
  for (const auto& word : suggest(cli::commands(), words).words) {
    texts.push_back(word.text);
  }
  return texts;
}

TEST(Suggestions, AreCommandsFirst) {
  EXPECT_THAT(suggested({""}), AllOf(Contains("ls"), Contains("table"), Contains("completion"), Contains("help")));
  EXPECT_THAT(suggested({""}), Not(Contains("completion bash"))) << "one word at a time";
  EXPECT_THAT(suggested({"rece"}), ElementsAre("receive"));
  EXPECT_THAT(suggested({"completion", ""}), ElementsAre("bash", "zsh", "fish", "powershell"));
  EXPECT_THAT(suggested({"help", "rece"}), ElementsAre("receive"));
  EXPECT_TRUE(suggested({"nonsense", ""}).empty());
  EXPECT_FALSE(suggested({}).empty());
  EXPECT_THAT(suggested({"qst"}), ElementsAre("qstat")) << "by another name";
  EXPECT_THAT(suggested({""}), Not(Contains("qstat"))) << "not beside the first one";
  EXPECT_EQ(suggest(cli::commands(), {"tab"}).lines(), "table\tcreate, describe, check, policy, shards\n");
}

TEST(Suggestions, AreTheCommandsOptionsThen) {
  EXPECT_THAT(suggested({"ls", "--"}), AllOf(Contains("--all"), Contains("--queue"), Contains("--help")));
  EXPECT_THAT(suggested({"ls", "--all", "--"}), Not(Contains("--all"))) << "it is given";
  EXPECT_THAT(suggested({"send", "--attr", "a=b", "--"}), Contains("--attr")) << "it may be repeated";
  EXPECT_THAT(suggested({"qstat", "--wat"}), ElementsAre("--watch")) << "by another name";
  EXPECT_THAT(suggested({"ls", "--queue=orders", "--"}), Not(Contains("--queue"))) << "it is given with its value";
  EXPECT_THAT(suggested({"table", "policy", "--format=json", "--writes", ""}), ElementsAre("batched", "single"));
  EXPECT_THAT(suggested({"log-level", "--config=host.toml", "d"}), ElementsAre("debug")) << "no value comes after it";
}

TEST(Suggestions, AreValuesWhereTheyAreKnown) {
  EXPECT_THAT(suggested({"ls", "--output", ""}), ElementsAre("json", "text"));
  EXPECT_THAT(suggested({"ls", "--output", "=", "t"}), ElementsAre("text")) << "as bash cuts words";
  EXPECT_THAT(suggested({"ls", "--output=t"}), ElementsAre("--output=text")) << "as zsh and fish do";
  EXPECT_THAT(suggested({"table", "policy", "--role", "p"}), ElementsAre("producer"));
  EXPECT_TRUE(suggested({"ls", "--nonsense=t"}).empty());
  EXPECT_THAT(suggested({"try", "--job", ""}), Not(Contains("NAME"))) << "it stands for others";
  EXPECT_TRUE(suggest(cli::commands(), {"try", "--job", ""}).files);
  EXPECT_TRUE(suggest(cli::commands(), {"ls", "--config", ""}).files);
  EXPECT_TRUE(suggest(cli::commands(), {"try", "--plugin", ""}).files) << "whatever kind of file";
  EXPECT_TRUE(suggest(cli::commands(), {"plugins", "--dir", ""}).files);
  EXPECT_TRUE(suggest(cli::commands(), {"try", "--job", ""}).files);
  EXPECT_TRUE(suggested({"try", "--job", ""}).empty()) << "and no kind as a word";
  EXPECT_TRUE(suggested({"get", "--id", ""}).empty());
}

// bash cuts a word at its colon, and completes the part behind it; other shells do not.
TEST(Suggestions, EndAnOutboxsName) {
  const HostFolder folder("[store]\npath = \"s.db\"\n[outbox.mail]\nkind = \"postgres\"\nurl = \"postgres://h/d\"\n");
  EXPECT_EQ(folder.run({"__complete", "ls", "outbox:m"}).out, "outbox:mail\n");
  for (const Words& words : std::vector<Words>{{"ls", "outbox", ":", "m"}, {"ls", "--queue", "outbox", ":"}}) {
    Words line{"__complete"};
    line.insert(line.end(), words.begin(), words.end());
    EXPECT_EQ(folder.run(line).out, "mail\n");
  }
  EXPECT_EQ(folder.run({"__complete", "ls", "--queue", "=", "outbox", ":", "m"}).out, "mail\n");
  EXPECT_THAT(folder.run({"__complete", "ls", "outbox", ":", ""}).out, Not(HasSubstr("mail"))) << "the word has ended";
}

TEST(Suggestions, KnowTheHostFilesQueues) {
  const HostFolder folder("[store]\npath = \"s.db\"\n[queues.orders]\n[queues.mail]\n");
  folder.write("jobs.d/a.toml", "[job]\nqueue = \"returns\"\nhandler = \"h\"\n");
  EXPECT_EQ(folder.run({"__complete", "ls", "--queue", ""}).out, "mail\norders\nreturns\n");
  EXPECT_EQ(folder.run({"__complete", "ls", "--queue", "o"}).out, "orders\n");
  EXPECT_EQ(folder.run({"__complete", "dlq", "o"}).out, "orders\n") << "as a plain word";
  EXPECT_EQ(folder.run({"__complete", "redrive", ""}).out, "mail\norders\nreturns\n") << "before ids";
  EXPECT_EQ(folder.run({"__complete", "redrive", "mail", "o"}).out, "");
  EXPECT_EQ(folder.run({"__complete", "ls", "--config", "nowhere.toml", "--queue", ""}).out, "");
  EXPECT_EQ(folder.run({"__complete", "ls", "--config=nowhere.toml", "--queue", ""}).out, "");
}

TEST(NearestWord, IsMeantBySpellingOrByItsBeginning) {
  const Words known{"qstat", "receive", "ls", "purge"};
  EXPECT_EQ(cli::nearest_word("recieve", known), "receive");
  EXPECT_EQ(cli::nearest_word("lss", known), "ls");
  EXPECT_EQ(cli::nearest_word("pur", known), "purge");
  EXPECT_EQ(cli::nearest_word("x", known), std::nullopt);
  EXPECT_EQ(cli::nearest_word("", known), std::nullopt);
}

/// The scripts themselves, by the shells that are here.
Finished bash(const std::string& script, const HostFolder& folder) {
  const std::string path = std::filesystem::path(SLUICE_BINARY).parent_path().string();
  return run_binary(
      {"-c", "PATH=" + path + ":$PATH\n" + script},
      {.input = {}, .folder = folder.path(), .environment = {}, .stdout_file = {}, .program = "/bin/bash"});
}

TEST(CompletionScript, WorksInBash) {
  const HostFolder folder("[store]\npath = \"s.db\"\n[queues.orders]\n");
  const auto complete = [&folder](const std::string& program, const std::string& words) {
    return bash("source <(" + program + " completion bash); COMP_WORDS=(" + program + " " + words +
                    "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _" + program + "_complete; echo \"${COMPREPLY[*]}\"",
                folder);
  };
  EXPECT_EQ(complete("sluice", "rece").out, "receive\n");
  EXPECT_EQ(complete("sluice", "ls --queue ''").out, "orders\n");
  EXPECT_EQ(complete("sluice", "completion ''").out, "bash zsh fish powershell\n");
  EXPECT_EQ(complete("dynamomq", "enq").out, "enqueue-test\n");
  EXPECT_EQ(complete("dynamomq", "get --i").out, "--id\n");
  EXPECT_EQ(bash("source <(sluice completion bash); complete -p sluice", folder).out,
            "complete -F _sluice_complete sluice\n");
}

TEST(CompletionScript, NamesTheProgramInEveryShell) {
  const HostFolder folder;
  for (const char* shell : {"bash", "zsh", "fish", "powershell"}) {
    const Finished script = folder.run({"completion", shell});
    EXPECT_EQ(script.exit_code, 0);
    EXPECT_THAT(script.out, testing::HasSubstr("sluice __complete"));
    EXPECT_THAT(script.out, Not(testing::HasSubstr("NAME")));
  }
  EXPECT_EQ(folder.run({"completion", "tcsh"}).exit_code, 64);
  EXPECT_EQ(folder.run({"completion"}).exit_code, 64);
}

}  // namespace
}  // namespace sluice::test
