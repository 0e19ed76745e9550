#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {
namespace {

struct Page {
  const char* golden;
  std::vector<std::string> words;
};

void PrintTo(const Page& page, std::ostream* out) { *out << page.golden; }

/// Every help text as its users see it. With SLUICE_UPDATE_GOLDEN set the test writes the files anew.
class Help : public testing::TestWithParam<Page> {};

TEST_P(Help, IsAsTheGoldenFileHasIt) {
  const std::string file = std::string(SLUICE_GOLDEN_DIR) + "/" + GetParam().golden + ".txt";
  const Finished shown = run_binary(GetParam().words, {});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_EQ(shown.err, "");
  for (const std::string& line : shown.out_lines()) {
    EXPECT_LE(line.size(), 80U) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << line << "|";
  }
  if (std::getenv("SLUICE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(file) << shown.out;
  }
  std::ostringstream golden;
  golden << std::ifstream(file).rdbuf();
  EXPECT_EQ(shown.out, golden.str()) << file;
}

INSTANTIATE_TEST_SUITE_P(
    Pages, Help,
    testing::Values(
        Page{"help", {"help"}}, Page{"help", {"--help"}}, Page{"help", {"-h"}}, Page{"run", {"run", "--help"}},
        Page{"run", {"help", "run"}}, Page{"check", {"check", "-h"}}, Page{"plugins", {"help", "plugins"}},
        Page{"plugin", {"help", "plugin"}}, Page{"plugin_inspect", {"plugin", "inspect", "--help"}},
        Page{"plugin_validate", {"plugin", "validate", "--help"}}, Page{"new_plugin", {"new", "plugin", "--help"}},
        Page{"new_plugin", {"help", "new", "plugin"}}, Page{"dev", {"dev", "--help"}}, Page{"try", {"try", "--help"}},
        Page{"replay", {"help", "replay"}}, Page{"crashes", {"help", "crashes"}}, Page{"health", {"help", "health"}},
        Page{"version", {"help", "version"}}, Page{"send", {"send", "--help"}}, Page{"get", {"get", "--help"}},
        Page{"ls", {"ls", "--help"}}, Page{"stats", {"stats", "--help"}}, Page{"purge", {"purge", "--help"}},
        Page{"table", {"help", "table"}}, Page{"table", {"table", "--help"}},
        Page{"table_create", {"table", "create", "--help"}}, Page{"table_create", {"help", "table", "create"}},
        Page{"table_describe", {"table", "describe", "--help"}}, Page{"table_check", {"table", "check", "--help"}},
        Page{"table_policy", {"table", "policy", "--help"}}, Page{"table_shards", {"table", "shards", "--help"}},
        Page{"export", {"export", "--help"}}, Page{"import", {"import", "--help"}}, Page{"move", {"move", "--help"}},
        Page{"tail", {"tail", "--help"}}, Page{"peek", {"peek", "--help"}}, Page{"redrive", {"redrive", "--help"}},
        Page{"delete", {"delete", "--help"}}, Page{"edit", {"edit", "--help"}}, Page{"delay", {"delay", "--help"}},
        Page{"cancel", {"cancel", "--help"}}, Page{"move_to_front", {"move-to-front", "--help"}},
        Page{"receive", {"receive", "--help"}}, Page{"fail", {"help", "fail"}}, Page{"invalid", {"invalid", "--help"}},
        Page{"reset", {"help", "reset"}}, Page{"dlq", {"dlq", "--help"}}, Page{"keys", {"keys", "--help"}},
        Page{"keys_list", {"keys", "list", "--help"}}, Page{"keys_show", {"help", "keys", "show"}},
        Page{"keys_forget", {"keys", "forget", "--help"}}, Page{"stats", {"help", "qstat"}},
        Page{"outbox", {"help", "outbox"}}, Page{"outbox_ddl", {"outbox", "ddl", "--help"}},
        Page{"outbox_status", {"help", "outbox", "status"}}, Page{"outbox_prune", {"outbox", "prune", "--help"}},
        Page{"enqueue_test", {"enqueue-test", "--help"}}, Page{"completion", {"help", "completion"}},
        Page{"completion", {"completion", "--help"}}, Page{"completion_bash", {"completion", "bash", "--help"}},
        Page{"audit", {"audit", "--help"}}, Page{"cancel_running", {"cancel-running", "--help"}},
        Page{"cost", {"cost", "--help"}}, Page{"drain", {"drain", "--help"}}, Page{"hosts", {"hosts", "--help"}},
        Page{"jobs", {"jobs", "--help"}}, Page{"log_level", {"log-level", "--help"}},
        Page{"pause", {"pause", "--help"}}, Page{"reload", {"reload", "--help"}}, Page{"resume", {"resume", "--help"}},
        Page{"running", {"running", "--help"}}, Page{"scale", {"scale", "--help"}}, Page{"top", {"top", "--help"}}));

TEST(HelpText, OfHelpIsTheGeneralOne) {
  const std::string general = run_binary({"help"}, {}).out;
  for (const char* const word : {"help", "--help", "-h"}) {
    EXPECT_EQ(run_binary({"help", word}, {}).out, general) << word;
  }
}

TEST(HelpText, OfEachCommandFitsIntoATerminal) {
  std::vector<std::string> topics{"filters"};
  for (const std::string& line : run_binary({"help"}, {}).out_lines()) {
    if (line.starts_with("  ") && line.find_first_not_of(' ') == 2 && std::islower(line[2]) != 0) {
      topics.push_back(line.substr(2, line.find("  ", 2) - 2));
    }
  }
  EXPECT_GT(topics.size(), 60U);
  for (const std::string& topic : topics) {
    std::istringstream words("help " + topic);
    const Finished shown =
        run_binary({std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()}, {});
    EXPECT_EQ(shown.exit_code, 0) << topic;
    for (const std::string& line : shown.out_lines()) {
      EXPECT_LE(line.size(), 80U) << topic << ": " << line;
    }
  }
}

TEST(HelpText, IsShownWhateverElseIsWrong) {
  EXPECT_EQ(run_binary({"get", "--help", "--queue", "x"}, {}).exit_code, 0);
  EXPECT_EQ(run_binary({"run", "--config", "/nowhere", "--help"}, {}).exit_code, 0);
}

TEST(HelpText, OfTheManualHasEachHeadingOnceAsThatOfTheTerminalHas) {
  const HostFolder folder;
  EXPECT_EQ(run_binary({"__share", folder.path()}, {}).exit_code, 0);
  std::ifstream page(folder.path() + "/man/man1/sluice.1");
  std::vector<std::string> headings;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with(".SS ")) {
      headings.push_back(line.substr(5, line.size() - 6) + ":");
    }
  }
  std::vector<std::string> shown = run_binary({"help"}, {}).out_lines();
  std::erase_if(shown, [](const std::string& line) { return line.ends_with(" codes:") || !line.ends_with(':'); });
  EXPECT_THAT(headings, testing::ElementsAreArray(shown));
}

TEST(Version, SaysWhatRuns) {
  const Finished text = run_binary({"version"}, {});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_EQ(text.out.rfind("sluice 1.", 0), 0U) << text.out;
  EXPECT_NE(text.out.find("plugin ABI 1."), std::string::npos);
  EXPECT_EQ(run_binary({"--version"}, {}).out, text.out);
  const Finished json = run_binary({"version", "--json"}, {});
  EXPECT_EQ(json.out.rfind("{\n  \"version\": \"1.", 0), 0U) << json.out;
}

}  // namespace
}  // namespace sluice::test
