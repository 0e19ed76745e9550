// What a plugin's file tells without being loaded, and what it cannot do to whoever reads it.
#include "host/plugin/plugin_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <fstream>
#include <sstream>

#include "base/random.hpp"
#include "host/plugin/plugin_registry.hpp"
#include "tests/plugin/plugin_fixture.hpp"

namespace sluice::plugin {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string bytes_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

/// A file in memory, under a name.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes) : file_(::memfd_create("plugin", MFD_CLOEXEC)) {
    EXPECT_TRUE(write_all(file_.get(), bytes));
  }

  std::string path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }
  void put(std::uint64_t offset, const std::string& bytes) const {
    EXPECT_EQ(::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes.size()));
  }

 private:
  Descriptor file_;
};

std::string refusal(const std::string& bytes) {
  const auto file = read_plugin_file(MemoryFile(bytes).path());
  return file ? "" : file.error().message();
}

/// The content of the plugin's note in the bytes of its file: from the format on.
std::size_t note_in(const std::string& bytes) {
  using std::string_literals::operator""s;
  const std::size_t found = bytes.find("\1\0\0\0Sluice\0\0\1\0\0\0"s);
  EXPECT_NE(found, std::string::npos);
  return found + 12;
}

std::string with(std::string bytes, std::size_t at, const std::string& other) {
  return bytes.replace(at, other.size(), other);
}

std::string number(std::uint32_t value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }

TEST(PluginFile, TellsWhatTheLoadedPluginTells) {
  for (const char* fixture : {"noop", "sleeper", "stages", "previous_minor", "no_report"}) {
    const auto file = read_plugin_file(fixture_file(fixture));
    ASSERT_TRUE(file) << file.error().message();
    const LibraryResult loaded = load_library(fixture_file(fixture));
    ASSERT_NE(loaded.plugin, nullptr) << loaded.why;
    ASSERT_NE(file->table, nullptr) << fixture;
    EXPECT_EQ(difference(file->table->table(), *loaded.plugin), "") << fixture;
    const bool is_c = std::string(fixture) == "previous_minor" || std::string(fixture) == "no_report";
    EXPECT_EQ(file->note == nullptr, is_c) << fixture;
    EXPECT_EQ(difference(file->declared()->table(), *loaded.plugin), "") << fixture;
    EXPECT_THAT(file->exported, ElementsAre(SLUICE_PLUGIN_SYMBOL)) << fixture;
    EXPECT_FALSE(file->stripped);
  }
}

TEST(PluginFile, TellsOptionsAndWhatIsAroundThem) {
  const auto file = read_plugin_file(fixture_file("fares"));
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_NE(file->note, nullptr);
  EXPECT_THAT(file->note->compiler(), ::testing::AnyOf(StartsWith("gcc "), StartsWith("clang ")));
  EXPECT_THAT(file->note->features(0), ElementsAre());
  EXPECT_THAT(file->needed, Contains(StartsWith("libc.so")));
}

TEST(PluginFile, NamesTheDifferenceOfANoteAndATable) {
  const std::string bytes = bytes_of(fixture_file("noop"));
  const std::size_t version = bytes.find("1.0.0", note_in(bytes));
  EXPECT_EQ(refusal(with(bytes, version, "1.0.9")),
            "has a note and a table that differ: version \"1.0.9\" and version \"1.0.0\"; build it again");
  const TemporaryFolder folder;
  std::ofstream(folder.file("edited.so"), std::ios::binary) << with(bytes, version, "1.0.9");
  const LibraryResult loaded = load_library(folder.file("edited.so"));
  EXPECT_FALSE(loaded.loaded) << "it is judged by its file";
  EXPECT_THAT(loaded.why, StartsWith("has a note and a table that differ"));
}

TEST(PluginFile, IsRefusedForAnotherVersionBeforeItsCodeRuns) {
  for (const char* fixture : {"major_too_new", "minor_too_new"}) {
    const LibraryResult result = load_library(fixture_file(fixture));  // its start-up code would end this process
    EXPECT_FALSE(result.loaded);
    EXPECT_THAT(result.why, HasSubstr("is built for plugin ABI"));
  }
  const std::string bytes = bytes_of(fixture_file("noop"));
  EXPECT_THAT(refusal(with(bytes, note_in(bytes) + 8, number(1))),
              AllOf(HasSubstr("is built for plugin ABI 1.1"), HasSubstr("update the host")));
}

TEST(PluginFile, ANoteThatThisHostCannotReadIsNoneAndTheTableCounts) {
  const std::string bytes = bytes_of(fixture_file("noop"));
  for (const auto& [place, value] : {std::pair(0U, 2U), std::pair(4U, 2U)}) {  // its format, its major version
    const auto file = read_plugin_file(MemoryFile(with(bytes, note_in(bytes) + place, number(value))).path());
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ(file->note, nullptr);
    EXPECT_STREQ(file->declared()->table().name, "noop");
  }
}

TEST(PluginFile, ADamagedNoteIsRefused) {
  const std::string bytes = bytes_of(fixture_file("noop"));
  EXPECT_THAT(refusal(with(bytes, note_in(bytes) + 12, number(0x7fffffff))), HasSubstr("has a damaged note"));
}

TEST(PluginFile, ASharedObjectThatIsNoPluginIsNamed) {
  EXPECT_THAT(read_plugin_file(fixture_file("no_entry")).error().message(),
              HasSubstr("it is not a Sluice plugin, or was built without SLUICE_PLUGIN and sluice_add_plugin"));
}

// Whatever lies in a plugin folder is read by the host itself.
TEST(PluginFile, NoBytesHarmWhoeverReadsThem) {
  for (const char* fixture : {"noop", "previous_minor"}) {
    const std::string bytes = bytes_of(fixture_file(fixture));
    const MemoryFile file(bytes);
    SeededRandom random(1);
    const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(bytes.data());
    const auto* const sections = reinterpret_cast<const Elf64_Shdr*>(bytes.data() + header->e_shoff);
    std::size_t refused = 0;
    for (int round = 0; round < 4000; ++round) {
      // Half of them into the headers and what lies behind them, half into any section.
      const Elf64_Shdr& section = sections[random.below(header->e_shnum)];
      const bool front = random.below(2) == 0 || section.sh_type == SHT_NOBITS || section.sh_size < 8;
      const std::uint64_t at = front ? random.below(4096) : section.sh_offset + random.below(section.sh_size - 7);
      const std::uint64_t value = random.below(3) == 0 ? ~std::uint64_t{0} >> random.below(64) : random.next();
      const std::size_t size = std::size_t{1} << random.below(4);
      file.put(at, std::string(reinterpret_cast<const char*>(&value), size));
      const auto read = read_plugin_file(file.path());
      refused += read ? 0 : 1;
      EXPECT_TRUE(read || !read.error().message().empty());
      if (random.below(4) == 0) {
        file.put(0, bytes);
      } else {
        file.put(at, bytes.substr(at, size));
      }
    }
    EXPECT_GT(refused, 100U) << fixture;
  }
}

}  // namespace
}  // namespace sluice::plugin
