#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <span>
#include <sstream>

#include "host/plugin/plugin_file.hpp"
#include "host/plugin/plugin_registry.hpp"
#include "tests/plugin/plugin_fixture.hpp"

namespace sluice::plugin {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

std::string read(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

/// Why the file cannot be a plugin; nothing when it can.
std::optional<std::string> refuse_file(const std::string& file) {
  const auto elf = ElfFile::open(file);
  return elf ? std::nullopt : std::optional(elf.error().message());
}

void write(const std::string& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

class FileTest : public ::testing::Test {
 protected:
  /// A copy of a plugin with its ELF header changed.
  std::string changed(const std::function<void(Elf64_Ehdr&)>& change) {
    std::string bytes = read(fixture_file("noop"));
    change(*reinterpret_cast<Elf64_Ehdr*>(bytes.data()));
    write(folder_.file("changed.so"), bytes);
    return folder_.file("changed.so");
  }

  TemporaryFolder folder_;
};

TEST_F(FileTest, AcceptsAWholePlugin) { EXPECT_EQ(refuse_file(fixture_file("noop")), std::nullopt); }

TEST_F(FileTest, RefusesWhatCannotBeRead) {
  EXPECT_THAT(refuse_file(folder_.file("absent.so")), Optional(HasSubstr("cannot be read: No such file")));
  EXPECT_THAT(refuse_file(folder_.path()), Optional(HasSubstr("is a folder")));
  ASSERT_EQ(::mkfifo(folder_.file("pipe.so").c_str(), 0600), 0);
  EXPECT_THAT(refuse_file(folder_.file("pipe.so")), Optional(HasSubstr("not a regular file")));
  if (::geteuid() != 0) {
    write(folder_.file("closed.so"), "x");
    ::chmod(folder_.file("closed.so").c_str(), 0);
    EXPECT_THAT(refuse_file(folder_.file("closed.so")), Optional(HasSubstr("cannot be read: Permission denied")));
  }
}

TEST_F(FileTest, RefusesWhatIsNoElfFile) {
  write(folder_.file("empty.so"), "");
  EXPECT_THAT(refuse_file(folder_.file("empty.so")), Optional(HasSubstr("is empty")));
  for (const std::string& text : {std::string("x"), std::string("#!/bin/sh\n"), std::string(5000, 'x'),
                                  std::string("\x7f"
                                              "ELF")}) {
    write(folder_.file("text.so"), text);
    EXPECT_THAT(refuse_file(folder_.file("text.so")), Optional(HasSubstr("not an ELF shared object")));
  }
}

TEST_F(FileTest, RefusesAStaticLibrary) {
  write(folder_.file("static.so"), "!<arch>\n/               0           0     0     0       4         `\n");
  EXPECT_THAT(refuse_file(folder_.file("static.so")), Optional(HasSubstr("is a static library")));
  write(folder_.file("libgreeter.a"), "!<arch>\n");
  PluginRegistry registry;
  registry.scan({folder_.path()});
  ASSERT_EQ(registry.rejected().size(), 2U);
  EXPECT_THAT(registry.rejected()[0].why, HasSubstr("libgreeter.a is a static library, which cannot be loaded"));
}

TEST_F(FileTest, RefusesOtherMachinesAndKinds) {
  EXPECT_THAT(refuse_file(changed([](Elf64_Ehdr& header) { header.e_machine = EM_S390; })),
              Optional(HasSubstr("is built for machine number 22, and this machine is")));
  EXPECT_THAT(refuse_file(changed([](Elf64_Ehdr& header) { header.e_ident[EI_CLASS] = ELFCLASS32; })),
              Optional(HasSubstr("is built for 32-bit ")));
  EXPECT_THAT(refuse_file(changed([](Elf64_Ehdr& header) {
                header.e_ident[EI_DATA] = header.e_ident[EI_DATA] == ELFDATA2LSB ? ELFDATA2MSB : ELFDATA2LSB;
                header.e_machine = __builtin_bswap16(EM_S390);
              })),
              Optional(HasSubstr("-endian machine number 22, and this machine is")));
  EXPECT_THAT(refuse_file(changed([](Elf64_Ehdr& header) { header.e_type = ET_REL; })),
              Optional(HasSubstr("an ELF object file, not a shared object")));
  EXPECT_THAT(refuse_file(changed([](Elf64_Ehdr& header) { header.e_type = ET_EXEC; })),
              Optional(HasSubstr("an ELF program")));
}

// A file that is being copied when the host looks; the dynamic linker would end the process with SIGBUS.
TEST_F(FileTest, RefusesEveryTruncation) {
  const std::string whole = read(fixture_file("noop"));
  for (std::size_t size = 0; size < whole.size(); size += 997) {
    write(folder_.file("cut.so"), whole.substr(0, size));
    EXPECT_NE(refuse_file(folder_.file("cut.so")), std::nullopt) << size;
  }
  write(folder_.file("cut.so"), whole.substr(0, whole.size() - 1));
  EXPECT_THAT(refuse_file(folder_.file("cut.so")), Optional(HasSubstr("is cut off or damaged")));
}

TEST_F(FileTest, RefusesNonsenseInTheHeader) {
  EXPECT_NE(refuse_file(changed([](Elf64_Ehdr& header) { header.e_phoff = ~std::uint64_t{0}; })), std::nullopt);
  EXPECT_NE(refuse_file(changed([](Elf64_Ehdr& header) { header.e_phnum = 0; })), std::nullopt);
  EXPECT_NE(refuse_file(changed([](Elf64_Ehdr& header) { header.e_phnum = 0xFFFF; })), std::nullopt);
  EXPECT_NE(refuse_file(changed([](Elf64_Ehdr& header) { header.e_shoff = ~std::uint64_t{0} - 8; })), std::nullopt);
}

// Most of it is a hole: what it claims is not what it has.
TEST_F(FileTest, AHugeFileTakesNoMoreMemoryThanARealOne) {
  std::string bytes = read(fixture_file("noop"));
  const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(bytes.data());
  auto* const segments = reinterpret_cast<Elf64_Phdr*>(bytes.data() + header.e_phoff);
  for (Elf64_Phdr& segment : std::span(segments, header.e_phnum)) {
    segment.p_filesz = segment.p_type == PT_NOTE ? std::uint64_t{2} << 30U : segment.p_filesz;
  }
  write(folder_.file("hole.so"), bytes);
  std::filesystem::resize_file(folder_.file("hole.so"), std::uint64_t{3} << 30U);
  const auto most_memory = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const auto before = most_memory();
  static_cast<void>(read_plugin_file(folder_.file("hole.so")));
  EXPECT_LT(most_memory() - before, 512 * 1024);
  std::filesystem::resize_file(folder_.file("hole.so"), std::uint64_t{5} << 30U);
  EXPECT_THAT(refuse_file(folder_.file("hole.so")), Optional(HasSubstr("has 5120 MiB, and a plugin has 4096 at most")));
}

TEST_F(FileTest, AProgramIsNoPlugin) {
  const std::string why = load_library("/proc/self/exe").why;
  EXPECT_THAT(why,
              ::testing::AnyOf(HasSubstr("has no symbol"), HasSubstr("cannot be loaded"), HasSubstr("an ELF program")));
}

TEST(LoadError, NamesTheSymbolReadably) {
  EXPECT_EQ(explain_load_error("/p/x.so", "/p/x.so: undefined symbol: _Z5shapei"),
            "needs the symbol \"shape(int)\", which no library has: link the one that defines it (LIBRARIES of "
            "sluice_add_plugin)");
  EXPECT_THAT(explain_load_error("/p/x.so", "/p/x.so: undefined symbol: SSL_new, version OPENSSL_3.0.0"),
              HasSubstr("needs the symbol \"SSL_new\","));
}

TEST(LoadError, NamesTheMissingLibrary) {
  EXPECT_EQ(explain_load_error("/p/x.so", "libfoo.so.1: cannot open shared object file: No such file or directory"),
            "needs the library libfoo.so.1, which cannot be opened: install it");
}

TEST(LoadError, NamesTheMissingVersion) {
  EXPECT_EQ(explain_load_error("/p/x.so", "/lib/libc.so.6: version `GLIBC_2.99' not found (required by /p/x.so)"),
            "needs GLIBC_2.99, which this system does not have: build it on this system or an older one");
}

TEST(LoadError, PassesOnTheRestInOneLine) {
  EXPECT_EQ(explain_load_error("/p/x.so", "/p/x.so: file too\nshort"), "cannot be loaded: file too short");
  EXPECT_EQ(explain_load_error("/p/x.so", ""), "cannot be loaded: ");
}

}  // namespace
}  // namespace sluice::plugin
