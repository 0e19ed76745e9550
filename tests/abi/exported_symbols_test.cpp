#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/abi/command.hpp"

namespace sluice::test {
namespace {

using ::testing::ElementsAre;

TEST(ExportedSymbols, EveryPluginOfThisBuildHasOne) {
  std::size_t count = 0;
  for (const char* folder : {SLUICE_PLUGIN_DIR, SLUICE_TEST_PLUGINS}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      // These two are linked as nobody should: without the symbol, and without the version script.
      if (entry.path().extension() == ".so" && name != "no_entry.so" && name != "loose.so") {
        EXPECT_THAT(exported_symbols(entry.path().string()), ElementsAre("sluice_plugin_v1")) << name;
        ++count;
      }
    }
  }
  EXPECT_GE(count, 30U);
}

TEST(ExportedSymbols, NoEntryHasNone) {
  EXPECT_THAT(exported_symbols(SLUICE_TEST_PLUGINS "/no_entry.so"), ElementsAre());
}

// The header as it was when version 1.0 came out; a change to it would make every other check here worthless.
TEST(FrozenHeader, IsNeverEdited) {
  std::ifstream file(SLUICE_SOURCE_DIR "/sdk/abi-history/v1.0/abi.h", std::ios::binary);
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (char c = 0; file.get(c);) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  EXPECT_EQ(hash, std::uint64_t{0xa1bbc651c5e09f04});
}

// A version that was released has a plugin for ever, built against its header, which tests load and run.
TEST(FrozenHeader, EachHasAPluginThatIsBuiltAgainstIt) {
  std::string sources;
  for (const auto& entry : std::filesystem::directory_iterator(SLUICE_SOURCE_DIR "/tests/fixtures/plugins")) {
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    sources += text.str();
  }
  std::size_t versions = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SLUICE_SOURCE_DIR "/sdk/abi-history")) {
    const std::string header = "\"abi-history/" + entry.path().filename().string() + "/abi.h\"";
    EXPECT_THAT(sources, testing::HasSubstr("#include " + header));
    ++versions;
  }
  EXPECT_GE(versions, 1U);
}

}  // namespace
}  // namespace sluice::test
