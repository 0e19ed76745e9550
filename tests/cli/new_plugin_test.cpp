#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using Words = std::vector<std::string>;

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

Words files_of(const std::string& folder) {
  Words files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files.push_back(std::filesystem::relative(entry.path(), folder).string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(NewPlugin, WritesAProject) {
  const HostFolder folder;
  const Finished made = folder.run({"new", "plugin", "thumb_maker"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.err, "");
  EXPECT_THAT(made.out_lines(), ElementsAre("made thumb_maker: 7 files", "now:", "  cd thumb_maker", HasSubstr("ctest"),
                                            "  sluice dev --plugin build/thumb_maker.so"));
  const std::string project = folder.path() + "/thumb_maker";
  EXPECT_THAT(files_of(project),
              ElementsAre(".gitignore", "CMakeLists.txt", "README.md", "host.toml", "jobs.d/thumb_maker.toml",
                          "tests/thumb_maker_test.cpp", "thumb_maker.cpp"));
  EXPECT_THAT(
      read(project + "/thumb_maker.cpp"),
      AllOf(HasSubstr("class ThumbMaker {"), HasSubstr("SLUICE_PLUGIN(\"thumb_maker\", \"1.0.0\", ThumbMaker)")));
  EXPECT_THAT(read(project + "/jobs.d/thumb_maker.toml"), HasSubstr("handler = \"thumb_maker\""));
  for (const std::string& file : files_of(project)) {
    EXPECT_THAT(read(project + "/" + file), Not(testing::ContainsRegex("my_?plugin|MyPlugin"))) << file;
  }
}

TEST(NewPlugin, WritesEachKind) {
  const HostFolder folder;
  EXPECT_EQ(folder.run({"new", "plugin", "old", "--c"}).exit_code, 0);
  EXPECT_THAT(files_of(folder.path() + "/old"), IsSupersetOf({"CMakeLists.txt", "old.c", "tests/old_test.cpp"}));
  EXPECT_THAT(files_of(folder.path() + "/old"), Not(testing::Contains("old.cpp")));
  EXPECT_EQ(folder.run({"new", "plugin", "many", "--batch"}).exit_code, 0);
  EXPECT_THAT(read(folder.path() + "/many/jobs.d/many.toml"), HasSubstr("max_batch"));
  EXPECT_EQ(folder.run({"new", "plugin", "later", "--async"}).exit_code, 0);
  EXPECT_THAT(read(folder.path() + "/later/later.cpp"), HasSubstr("co_await"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/later/.github"));
  EXPECT_EQ(folder.run({"new", "plugin", "checked", "--ci"}).exit_code, 0);
  EXPECT_THAT(read(folder.path() + "/checked/.github/workflows/plugin.yml"),
              HasSubstr("sluice plugin validate build/checked.so"));
}

TEST(NewPlugin, GoesToTheFolderThatIsNamed) {
  const HostFolder folder;
  const Finished made = folder.run({"new", "plugin", "a", "--dir", "deep/er/it's here/", "--json"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const auto told = boost::json::parse(made.out).as_object();
  EXPECT_EQ(told.at("plugin").as_string(), "a");
  EXPECT_EQ(told.at("folder").as_string(), "deep/er/it's here");
  EXPECT_EQ(told.at("files").as_array().size(), 7U);
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/deep/er/it's here/a.cpp"));
  EXPECT_THAT(folder.run({"new", "plugin", "a", "--dir", "it's"}).out, HasSubstr("  cd 'it'\\''s'\n"));
  EXPECT_THAT(folder.run({"new", "plugin", "a", "--dir", "\x1b[31m"}).out, Not(HasSubstr("\x1b")));
}

TEST(NewPlugin, OverwritesNothing) {
  const HostFolder folder;
  std::filesystem::create_directory(folder.path() + "/mine");
  folder.write("mine/mine.cpp", "precious");
  folder.write("file", "precious");
  std::filesystem::create_symlink("nowhere", folder.path() + "/link");
  for (const char* const there : {"mine", "file", "link", "."}) {
    const Finished made = folder.run({"new", "plugin", "mine", "--dir", there});
    EXPECT_EQ(made.exit_code, 1) << there;
    EXPECT_EQ(made.out, "");
    EXPECT_EQ(made.err, "sluice new plugin: " + std::string(there) +
                            " exists already, and nothing in it is touched; remove it, or name another folder with "
                            "--dir\n");
  }
  EXPECT_THAT(files_of(folder.path() + "/mine"), ElementsAre("mine.cpp"));
  EXPECT_EQ(read(folder.path() + "/mine/mine.cpp"), "precious");
  EXPECT_EQ(read(folder.path() + "/file"), "precious");
}

TEST(NewPlugin, SaysWhereItCannotWrite) {
  const HostFolder folder;
  folder.write("file", "");
  EXPECT_EQ(folder.run({"new", "plugin", "a", "--dir", "file/a"}).err,
            "sluice new plugin: cannot make the folder file: Not a directory\n");
  EXPECT_EQ(folder.run({"new", "plugin", "a", "--dir", "/proc/a"}).err,
            "sluice new plugin: cannot make the folder /proc/a: No such file or directory\n");
  EXPECT_THAT(folder.run({"new", "plugin", "a", "--dir", std::string(300, 'x')}).err, HasSubstr("File name too long"));
}

TEST(NewPlugin, LeavesNoHalfOfAProject) {
  const HostFolder folder;
  // The folder's path is as long as paths may be, and those of its files are too long.
  std::string deep;
  for (int i = 0; i < 40; ++i) {
    deep += std::string(100, 'd') + "/";
  }
  deep += std::string(45, 'z');
  for (int i = 0; i < 2; ++i) {
    const Finished made = folder.run({"new", "plugin", "a", "--dir", deep});
    EXPECT_EQ(made.exit_code, 1);
    EXPECT_THAT(made.err, AllOf(HasSubstr("cannot write "), HasSubstr("File name too long"))) << "try " << i;
  }
}

TEST(NewPlugin, RefusesNamesThatAreNone) {
  const HostFolder folder;
  const auto refusal = [&folder](const std::string& name) {
    const Finished made = folder.run({"new", "plugin", "--", name});
    EXPECT_EQ(made.exit_code, 64) << name;
    EXPECT_EQ(made.err_lines().size(), 1U) << made.err;
    return made.err;
  };
  EXPECT_THAT(refusal("Thumb-Maker"), HasSubstr("write thumb_maker"));
  EXPECT_THAT(refusal("2nd"), HasSubstr("write nd"));
  EXPECT_THAT(refusal("../up"), HasSubstr("write up"));
  EXPECT_THAT(refusal("a b;$(c)"), HasSubstr("write a_b_c"));
  for (const std::string& name : {std::string("größe"), std::string("_"), std::string("42"), std::string(65, 'a'),
                                  std::string(100'000, 'x'), std::string("\x1b[31m")}) {
    const std::string said = refusal(name);
    EXPECT_THAT(said, AllOf(HasSubstr("cannot be called"), Not(HasSubstr("\x1b"))));
    EXPECT_LT(said.size(), 300U);
  }
  for (const char* const word : {"class", "co_await", "xor_eq", "test", "install"}) {
    EXPECT_THAT(refusal(word), HasSubstr("belongs to C++ or CMake; write another one"));
  }
  EXPECT_THAT(refusal("Class"), HasSubstr("write small letters"));
  EXPECT_THAT(refusal(""), HasSubstr("--name is empty"));
  EXPECT_THAT(files_of(folder.path()), ElementsAre("host.toml"));
}

TEST(NewPlugin, TakesOneKind) {
  const HostFolder folder;
  EXPECT_EQ(folder.run({"new", "plugin", "a", "--batch", "--c"}).err,
            "sluice new plugin: --batch and --c exclude each other; give one\n");
  EXPECT_EQ(folder.run({"new", "plugin", "a", "--async", "--c"}).exit_code, 64);
  EXPECT_EQ(folder.run({"new", "plugin"}).err,
            "sluice new plugin: --name is missing; write `sluice new plugin NAME` or --name NAME\n");
  EXPECT_EQ(folder.run({"new"}).exit_code, 64);
}

}  // namespace
}  // namespace sluice::test
