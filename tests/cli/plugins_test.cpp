#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A folder with the fixture plugin, one file that is none, and a job.
class PluginFolder : public HostFolder {
 public:
  PluginFolder() : HostFolder("[store]\nkind = \"sqlite\"\npath = \"sluice.db\"\n") {
    std::filesystem::copy_file(SLUICE_FIXTURE_PLUGIN, path() + "/plugins/fixture.so");
    job("orders", "port = 7\n");
  }
  void job(const std::string& name, const std::string& options) const {
    write("jobs.d/" + name + ".toml", "[job]\nqueue = \"orders\"\nhandler = \"greet\"\n[job.options]\n" + options);
  }
};

TEST(Plugins, ShowsHandlersAndOptions) {
  const PluginFolder folder;
  folder.write("plugins/text.so", "hello");
  const Finished shown = folder.run({"plugins", "--output", "text"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  const auto lines = shown.out_lines();
  ASSERT_EQ(lines.size(), 7U) << shown.out;
  EXPECT_THAT(lines[0], AllOf(StartsWith("fixture 1.2.3 (ABI 1."), EndsWith("plugins/fixture.so")));
  EXPECT_EQ(lines[1], "  handler greet: Greets.");
  EXPECT_EQ(lines[2], "    one instance for all workers of a job");
  EXPECT_EQ(lines[3], "    greeting (string, default hello): What is said");
  EXPECT_EQ(lines[4], "    token (string, secret): Who says it");
  EXPECT_EQ(lines[5], "    port (integer, required): Where to");
  EXPECT_THAT(lines[6], AllOf(StartsWith("rejected: "), HasSubstr("plugins/text.so ")));
  EXPECT_EQ(lines[6].find("text.so"), lines[6].rfind("text.so")) << "it is named once";
}

TEST(Plugins, ShowsNoFileNameThatSteersATerminal) {
  const PluginFolder folder;
  folder.write("plugins/a\x1b[2J.so", "hello");
  EXPECT_THAT(folder.run({"plugins", "--output", "text"}).out, AllOf(HasSubstr("[2J.so"), Not(HasSubstr("\x1b"))));
}

TEST(Plugins, PrintsJson) {
  const PluginFolder folder;
  folder.write("plugins/text.so", "hello");
  const Finished shown = folder.run({"plugins", "--json"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  const auto document = boost::json::parse(shown.out).as_object();
  const auto& plugin = document.at("plugins").at(0);
  EXPECT_EQ(plugin.at("name").as_string(), "fixture");
  const auto& handler = plugin.at("handlers").at(0);
  EXPECT_TRUE(handler.at("concurrent").as_bool());
  EXPECT_EQ(handler.at("options").at(0).at("default").as_string(), "hello");
  EXPECT_TRUE(handler.at("options").at(1).at("default").is_null()) << "a secret is never printed";
  EXPECT_TRUE(handler.at("options").at(2).at("required").as_bool());
  EXPECT_THAT(std::string(document.at("rejected").at(0).at("file").as_string()), EndsWith("text.so"));
  EXPECT_EQ(shown.out.find("hidden-default"), std::string::npos);
}

TEST(Plugins, LooksIntoAFolderWithoutAHostFile) {
  const PluginFolder folder;
  std::filesystem::remove(folder.path() + "/host.toml");
  EXPECT_THAT(folder.run({"plugins", "--dir", "plugins", "--output", "text"}).out, StartsWith("fixture 1.2.3"));
  const Finished none = folder.run({"plugins", "--dir", "jobs.d", "--json"});
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_TRUE(boost::json::parse(none.out).at("plugins").as_array().empty());
  EXPECT_EQ(none.err, "there is no plugin in jobs.d\n");
}

TEST(PluginInspect, ShowsAFileWithoutLoadingIt) {
  const PluginFolder folder;
  const Finished shown = folder.run({"plugin", "inspect", "plugins/fixture.so", "--output", "text"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  const auto lines = shown.out_lines();
  ASSERT_GE(lines.size(), 8U) << shown.out;
  EXPECT_EQ(lines[0], "fixture 1.2.3 (ABI 1.0): plugins/fixture.so");
  EXPECT_EQ(lines[1], "  handler greet: Greets.");
  EXPECT_EQ(lines[4], "    token (string, secret): Who says it");
  EXPECT_THAT(shown.out, HasSubstr("\n  exports sluice_plugin_v1\n"));
  EXPECT_THAT(lines.back(), StartsWith("  without a note"));
}

TEST(PluginInspect, PrintsJson) {
  const Finished shown = run_binary({"plugin", "inspect", "--json", SLUICE_NOTED_PLUGIN}, {});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  const auto plugin = boost::json::parse(shown.out).as_object();
  EXPECT_EQ(plugin.at("name").as_string(), "log");
  EXPECT_EQ(plugin.at("abi").as_string(), "1.0");
  EXPECT_TRUE(plugin.at("note").as_bool());
  EXPECT_EQ(plugin.at("exported").at(0).as_string(), "sluice_plugin_v1");
  EXPECT_FALSE(plugin.at("needed").as_array().empty());
  const auto& handler = plugin.at("handlers").at(0);
  EXPECT_TRUE(handler.at("concurrent").as_bool());
  EXPECT_TRUE(handler.at("features").as_array().empty());
  EXPECT_FALSE(handler.at("options").as_array().empty());
}

TEST(PluginInspect, SaysInALineWhyAFileIsNone) {
  const PluginFolder folder;
  folder.write("text.so", "hello");
  folder.write("empty.so", "");
  const auto inspect = [&folder](const std::string& file) {
    const Finished shown = folder.run({"plugin", "inspect", file});
    EXPECT_EQ(shown.exit_code, 1) << file;
    EXPECT_EQ(shown.out, "");
    EXPECT_EQ(shown.err_lines().size(), 1U) << shown.err;
    return shown.err;
  };
  EXPECT_EQ(inspect("absent.so"), "sluice plugin inspect: absent.so cannot be read: No such file or directory\n");
  EXPECT_THAT(inspect("plugins"), HasSubstr("plugins is a folder, not a plugin"));
  EXPECT_THAT(inspect("text.so"), HasSubstr("text.so is not an ELF shared object: a plugin is what"));
  EXPECT_THAT(inspect("empty.so"), HasSubstr("empty.so is empty"));
  EXPECT_THAT(inspect("/proc/self/exe"), HasSubstr("sluice_plugin_v1"));
  EXPECT_EQ(folder.run({"plugin", "inspect"}).exit_code, 64);
}

TEST(Check, PrintsALineForEachJob) {
  const PluginFolder folder;
  folder.write("jobs.d/apart.toml",
               "[job]\nqueue = \"apart\"\nhandler = \"greet\"\nisolation = \"process\"\n[job.options]\nport = 7\n");
  const Finished checked = folder.run({"check"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_EQ(checked.out,
            "apart: queue apart, handler greet of fixture 1.2.3, 8 workers in processes of their own, 5 attempts\n"
            "orders: queue orders, handler greet of fixture 1.2.3, 8 workers, 5 attempts\n");
  EXPECT_EQ(checked.err, "host.toml: good\n");
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/sluice.db")) << "no queue is touched";
}

TEST(Check, NamesEveryErrorOfEveryJob) {
  const PluginFolder folder;
  folder.job("a", "port = \"seven\"\n");
  folder.job("b", "prot = 7\n");
  folder.write("jobs.d/c.toml", "[job]\nqueue = \"c\"\nhandler = \"gret\"\n");
  const Finished checked = folder.run({"check"});
  EXPECT_EQ(checked.exit_code, 78);
  EXPECT_EQ(checked.out, "");
  EXPECT_THAT(checked.err, HasSubstr("jobs.d/a.toml:5:1: "));
  EXPECT_THAT(checked.err, AllOf(HasSubstr("jobs.d/b.toml:5:1: "), HasSubstr("prot")));
  EXPECT_THAT(checked.err, AllOf(HasSubstr("jobs.d/c.toml:3:"), HasSubstr("greet")));
  EXPECT_THAT(checked.err_lines().back(), testing::MatchesRegex("sluice check: host.toml: [4-9] errors, 2 warnings"));
}

TEST(Check, AsksTheHandlerItself) {
  const PluginFolder folder;
  folder.job("orders", "port = 7\ngreeting = \"no\"\n");
  const Finished checked = folder.run({"check"});
  EXPECT_EQ(checked.exit_code, 78);
  EXPECT_THAT(checked.err, AllOf(HasSubstr("jobs.d/orders.toml:3:"), HasSubstr("no is no greeting")));
}

TEST(Check, WarnsOfWhatIsSeldomMeant) {
  const PluginFolder folder;
  folder.write("host.toml", "[store]\npath = \"sluice.db\"\n[queues.unused]\nvisibility_timeout = \"5s\"\n");
  folder.write("plugins/text.so", "hello");
  folder.job("second", "port = 8\n");
  const Finished checked = folder.run({"check"});
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_THAT(checked.err_lines(),
              ElementsAre(AllOf(StartsWith("warning: not used: "), HasSubstr("plugins/text.so ")),
                          "warning: jobs orders and second share queue orders: each message goes to one of them, "
                          "whichever claims it first",
                          "warning: no job works on queue unused, which [queues.unused] configures",
                          "host.toml: good, 3 warnings"));
}

TEST(Check, WarnsOfAJobWhoseQueuesLieInStoresOfTwoKinds) {
  const PluginFolder folder;
  folder.write("host.toml",
               "[store]\npath = \"sluice.db\"\n[stores.cloud]\nkind = \"dynamodb\"\nregion = \"eu-west-1\"\n"
               "[queues.bulk]\nstore = \"cloud\"\n");
  folder.write("jobs.d/both.toml",
               "[job]\nqueues = [\"near:1\", \"bulk:1\"]\nhandler = \"greet\"\n[job.options]\nport = 7\n");
  const Finished checked = folder.run({"check"});
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_THAT(
      checked.err,
      HasSubstr("warning: job both draws from stores of two kinds: writes that its handler stages are SQL by its "
                "first queue, near, and are refused with the messages of bulk; give that queue a job of its own, "
                "unless the handler stages messages alone\n"));
}

// It said good where the folder that the file names was not there.
TEST(Check, WarnsOfAPluginFolderThatIsNamedAndNotThere) {
  const PluginFolder folder;
  std::filesystem::rename(folder.path() + "/plugins", folder.path() + "/built");
  folder.write("host.toml", "[host]\nplugin_dirs = [\"plugins\", \"built\"]\n[store]\npath = \"sluice.db\"\n");
  EXPECT_THAT(folder.run({"check"}).err_lines(),
              ElementsAre(AllOf(StartsWith("warning: not used: plugins "), HasSubstr("make the folder")),
                          "host.toml: good, 1 warning"));
}

// Calls of a store without an endpoint went to AWS, from a host file that was meant for an emulator.
TEST(Check, WarnsOfAnEndpointThatOnlyOneOfTwoHas) {
  const PluginFolder folder;
  const std::string host =
      "[store]\npath = \"sluice.db\"\n[stores.one]\nkind = \"dynamodb\"\nendpoint = \"http://127.0.0.1:1\"\n"
      "[stores.two]\nkind = \"dynamodb\"\nregion = \"eu-west-1\"\n";
  folder.write("host.toml", host);
  EXPECT_THAT(folder.run({"check"}).err_lines(),
              ElementsAre("warning: store two has no endpoint, and store one has one: calls of the first go to AWS, "
                          "unless AWS_ENDPOINT_URL says otherwise; give it an endpoint, or the other none",
                          "host.toml: good, 1 warning"));
  folder.write("host.toml", host + "endpoint = \"http://127.0.0.1:2\"\n");
  EXPECT_EQ(folder.run({"check"}).err, "host.toml: good\n");
}

// It complained of steering that cannot be read, and said nothing of a database that nobody had asked.
TEST(Check, SaysThatAnOutboxWasNotAsked) {
  const PluginFolder folder;
  folder.write("host.toml",
               "[store]\nkind = \"dynamodb\"\n[dynamodb]\nendpoint = \"http://127.0.0.1:1\"\n"
               "[outbox.o]\nkind = \"postgres\"\nurl = \"postgres://nobody@127.0.0.1:1/none\"\n");
  folder.write("jobs.d/orders.toml", "[job]\nsource = \"outbox:o\"\nhandler = \"greet\"\n[job.options]\nport = 7\n");
  const Finished checked = folder.run({"check"});
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_EQ(checked.err, "outbox o was not asked; `sluice outbox status o` does\nhost.toml: good\n");
}

TEST(Check, SaysThatThereIsNoJob) {
  const HostFolder folder;
  const Finished checked = folder.run({"check"});
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_THAT(checked.err, HasSubstr("warning: there is no job"));
}

TEST(Check, ErrorsOfTheHostFileAreCounted) {
  const HostFolder folder("[hots]\n");
  const Finished checked = folder.run({"check"});
  EXPECT_EQ(checked.exit_code, 78);
  EXPECT_THAT(checked.err_lines(), ElementsAre(HasSubstr("hots"), "sluice check: host.toml: 1 error"));
}

}  // namespace
}  // namespace sluice::test
