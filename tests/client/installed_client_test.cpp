// The library as somebody has it who installed it: found by find_package, used by the example out of tree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/abi/command.hpp"

namespace sluice::test {
namespace {

using ::testing::HasSubstr;

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// An installed library in a folder of its own, for one compiler.
class InstalledClientTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()).find("NOTFOUND") != std::string::npos) {
      GTEST_SKIP() << "THIS COMPILER IS NOT INSTALLED; programs outside the tree are not tested with it";
    }
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-client-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    for (const std::string component : {"client", "client_library"}) {
      const CommandResult installed = run(std::string(SLUICE_CMAKE) + " --install '" SLUICE_BINARY_DIR "' --component " +
                                          component + " --prefix " + path("prefix"));
      ASSERT_EQ(installed.status, 0) << installed.output;
    }
  }
  void TearDown() override {
    if (!root_.empty()) {
      std::filesystem::remove_all(root_);
    }
  }

  std::string path(const std::string& name) const { return (root_ / name).string(); }
  CommandResult configure(const std::string& source, const std::string& build) const {
    const std::string sanitize = SLUICE_SANITIZE;
    const std::string flags =
        "-Wall -Wextra -Wpedantic -Wshadow -Werror" + (sanitize.empty() ? "" : " -fsanitize=" + sanitize);
    return run(std::string("env -u CXXFLAGS -u LDFLAGS ") + SLUICE_CMAKE + " -S " + path(source) + " -B " +
               path(build) + " -DCMAKE_PREFIX_PATH=" + path("prefix") + " -DCMAKE_CXX_COMPILER=" + GetParam() +
               " -DCMAKE_CXX_FLAGS='" + flags + "'");
  }

  std::filesystem::path root_;
};

TEST_P(InstalledClientTest, RunsTheExample) {
  if (!std::string(SLUICE_SANITIZE).empty() && std::string(GetParam()).find("clang") == std::string::npos) {
    GTEST_SKIP() << "a library with clang's sanitizer takes clang's programs only";
  }
  // In a copy, as a user has it, so that nothing of the tree around it is found by accident.
  std::filesystem::copy(path("prefix/share/sluice-client/example"), path("orders"));
  const CommandResult configured = configure("orders", "build");
  ASSERT_EQ(configured.status, 0) << configured.output;
  const CommandResult built = run(std::string(SLUICE_CMAKE) + " --build " + path("build"));
  ASSERT_EQ(built.status, 0) << built.output;
  const CommandResult ran = run(path("build/orders") + " " + path("orders.db"));
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.output, "sent invoice-4711\nreceived {\"order\": 1}\ndone\n100 messages, 99 ready\n");
}

TEST_P(InstalledClientTest, IsNotFoundUnderAnotherMajorVersion) {
  std::filesystem::create_directory(path("future"));
  std::ofstream(path("future/CMakeLists.txt"))
      << "cmake_minimum_required(VERSION 3.25)\nproject(future LANGUAGES CXX)\n"
         "find_package(sluice-client 2 REQUIRED)\n";
  const CommandResult configured = configure("future", "future-build");
  EXPECT_NE(configured.status, 0);
  EXPECT_THAT(configured.output, HasSubstr("version: 1."));
}

TEST_P(InstalledClientTest, WarnsOfNoFieldThatIsLeftOut) {
  const CommandResult compiled = run(
      std::string(GetParam()) + " -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only -I" +
      path("prefix/include") + " '" SLUICE_SOURCE_DIR "/tests/client/fields_alone.cpp'");
  EXPECT_EQ(compiled.status, 0) << compiled.output;
}

INSTANTIATE_TEST_SUITE_P(Gcc, InstalledClientTest, ::testing::Values(SLUICE_GXX));
INSTANTIATE_TEST_SUITE_P(Clang, InstalledClientTest, ::testing::Values(SLUICE_CLANGXX));

// Nothing of ours that is inside, and nothing of the libraries it is made with, can meet what a program brings itself.
TEST(ClientLibrary, ExportsItsInterfaceAndNothingElse) {
  if (!std::string(SLUICE_SANITIZE).empty()) {
    GTEST_SKIP() << "a sanitizer exports symbols of its own";
  }
  const auto symbols = exported_symbols(SLUICE_BINARY_DIR "/client/libsluice-client.so");
  EXPECT_GT(symbols.size(), 20U);
  for (const std::string& symbol : symbols) {
    const bool of_client =
        symbol.find("N6sluice6client") != std::string::npos || symbol.find("NK6sluice6client") != std::string::npos;
    EXPECT_TRUE(of_client) << symbol;
    EXPECT_EQ(symbol.find("6detail"), std::string::npos) << symbol;
    EXPECT_EQ(symbol.find("5Parts"), std::string::npos) << symbol;
  }
}

// The documentation shows the program that is tested here, not a relative of it.
TEST(ClientDocs, ShowsTheExampleAsItIs) {
  const std::string page = text_of(SLUICE_SOURCE_DIR "/docs/write/producing.md");
  const std::string example = text_of(SLUICE_SOURCE_DIR "/client/example/orders.cpp");
  EXPECT_THAT(page, HasSubstr(example.substr(example.find("#include"))));
}

}  // namespace
}  // namespace sluice::test
