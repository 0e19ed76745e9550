// Mistakes that an author is told of by the compiler, in words of this project.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/abi/command.hpp"

namespace sluice::test {
namespace {

using ::testing::HasSubstr;

/// What the compiler says about a plugin's source.
CommandResult compile(const std::string& source) {
  std::string pattern = (std::filesystem::temp_directory_path() / "sluice-source-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  std::ofstream(folder / "plugin.cpp") << "#include <sluice/handler.hpp>\n" << source;
  const CommandResult result = run("'" SLUICE_CXX
                                   "' -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Werror "
                                   "-I'" SLUICE_SOURCE_DIR "/sdk/include' '" +
                                   (folder / "plugin.cpp").string() + "'");
  std::filesystem::remove_all(folder);
  return result;
}

std::string handler(const std::string& name, const std::string& members) {
  return "struct " + name + " {\n" + members +
         "\n  sluice::Outcome handle(const sluice::Message&, sluice::Context&) const { return sluice::done(); }\n};\n";
}

TEST(CompileErrors, NoneForWhatIsInOrder) {
  const CommandResult result = compile(handler("A", "static constexpr const char* name = \"a\";") + handler("B", "") +
                                       "SLUICE_PLUGIN(\"b\", \"1.0.0\", A, B)\n");
  EXPECT_EQ(result.status, 0) << result.output;
}

TEST(CompileErrors, AHandlerWithoutHandle) {
  const CommandResult result = compile("struct A {};\nSLUICE_PLUGIN(\"a\", \"1.0.0\", A)\n");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.output,
              HasSubstr("a handler needs: sluice::Outcome handle(const sluice::Message&, sluice::Context&)"));
}

TEST(CompileErrors, AConstructorThatTheHostCannotCall) {
  const CommandResult result = compile(handler("A", "explicit A(int) {}") + "SLUICE_PLUGIN(\"a\", \"1.0.0\", A)\n");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.output, HasSubstr("a handler needs a constructor from (const sluice::Options&, sluice::Host)"));
}

TEST(CompileErrors, TwoHandlersOfOneName) {
  const CommandResult result = compile(handler("A", "") + handler("B", "") + "SLUICE_PLUGIN(\"a\", \"1.0.0\", A, B)\n");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.output, HasSubstr("two handlers of this plugin have one name"));
}

TEST(CompileErrors, ADefaultOfAnotherType) {
  const auto with_default = [](const std::string& type, const std::string& text) {
    return compile(handler("A", "static constexpr sluice::OptionSpec options[] = {sluice::option<" + type +
                                    ">(\"n\", R\"(" + text + ")\", \"\")};") +
                   "SLUICE_PLUGIN(\"a\", \"1.0.0\", A)\n")
        .status;
  };
  EXPECT_EQ(with_default("std::chrono::seconds", "5s"), 0);
  EXPECT_NE(with_default("std::chrono::seconds", "5"), 0);
  EXPECT_NE(with_default("std::vector<std::string>", "a"), 0);
  EXPECT_NE(with_default("std::vector<int>", "[]"), 0) << "no option can be a list of numbers";
}

}  // namespace
}  // namespace sluice::test
