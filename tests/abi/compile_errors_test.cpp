// Mistakes that an author is told of by the compiler, in words of this project.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/abi/command.hpp"

namespace sluice::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kCompiler =
    "'" SLUICE_CXX "' -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Werror -I'" SLUICE_SOURCE_DIR "/sdk/include' ";

/// The SDK's header, parsed once for all that is compiled against it.
class ParsedHeader {
 public:
  ParsedHeader() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-source-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    std::ofstream(folder_ / "sdk.hpp") << "#include <sluice/handler.hpp>\n";
    const CommandResult result = run(kCompiler + ("-x c++-header -o " + file("sdk.hpp") + ".gch " + file("sdk.hpp")));
    EXPECT_EQ(result.status, 0) << result.output;
  }
  ~ParsedHeader() { std::filesystem::remove_all(folder_); }
  ParsedHeader(const ParsedHeader&) = delete;
  ParsedHeader& operator=(const ParsedHeader&) = delete;

  /// What the compiler says about a plugin's source.
  CommandResult compile(const std::string& source) const {
    std::ofstream(folder_ / "plugin.cpp") << source;
    return run(kCompiler + ("-fsyntax-only -include " + file("sdk.hpp") + " " + file("plugin.cpp")));
  }

 private:
  std::string file(const char* name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

CommandResult compile(const std::string& source) {
  static const ParsedHeader sdk;
  return sdk.compile(source);
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

struct Mistake {
  const char* handle;
  const char* remark;
};

TEST(CompileErrors, AHandleThatIsAlmostRight) {
  for (const auto& [handle, remark] : {
           Mistake{"void handle(const sluice::Message&, sluice::Context&) {}", "returns something else"},
           Mistake{"bool handle(const sluice::Message&, sluice::Context&) const { return true; }",
                   "returns something else"},
           Mistake{"sluice::Outcome handle(sluice::Message&, sluice::Context&) { return sluice::done(); }",
                   "lacks the const of its message"},
           Mistake{"sluice::Outcome handle(const sluice::Message&) { return sluice::done(); }",
                   "takes a message alone: add sluice::Context&"},
           Mistake{"sluice::Outcome handle(sluice::Context&, const sluice::Message&) { return sluice::done(); }",
                   "takes the context first"},
           Mistake{"sluice::Outcome handle(sluice::Message, sluice::Context&) { return sluice::done(); }",
                   "by value: take them by reference"},
           Mistake{"sluice::Outcome handle(const sluice::Message&, sluice::Context) const { return sluice::done(); }",
                   "by value: take them by reference"},
           Mistake{"private: sluice::Outcome handle(const sluice::Message&, sluice::Context&) { return {}; }",
                   "is not public"},
           Mistake{"sluice::Outcome handle(int) { return sluice::done(); }", "takes other parameters"},
           Mistake{"sluice::Outcome Handle(const sluice::Message&, sluice::Context&) { return sluice::done(); }",
                   "has no member function handle"},
       }) {
    const CommandResult result =
        compile(std::string("struct A { ") + handle + " };\nSLUICE_PLUGIN(\"a\", \"1.0.0\", A)\n");
    EXPECT_NE(result.status, 0) << handle;
    EXPECT_THAT(result.output, AllOf(HasSubstr("a handler needs: sluice::Outcome handle(const sluice::Message&, "
                                               "sluice::Context&); "),
                                     HasSubstr(remark)))
        << handle;
  }
}

TEST(CompileErrors, ACoroutineWithTheContextOfAnOrdinaryHandle) {
  const auto coroutine = [](const std::string& context) {
    return compile("struct A {\n  sluice::Task<sluice::Outcome> handle(const sluice::Message&, " + context +
                   "&) const { co_return sluice::done(); }\n};\nSLUICE_PLUGIN(\"a\", \"1.0.0\", A)\n");
  };
  EXPECT_EQ(coroutine("sluice::AsyncContext").status, 0);
  const CommandResult result = coroutine("sluice::Context");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.output, HasSubstr("a handle that is a coroutine takes a sluice::AsyncContext&"));
}

TEST(CompileErrors, AHandlerThatGoesAroundOthersByHalves) {
  const std::string enter = "  sluice::Entry enter(const sluice::Message&, sluice::Context&) const { return {}; }\n";
  const std::string leave = "  void leave(sluice::Leaving&) const {}\n";
  const std::string both = "a class that goes around others needs both: sluice::Entry enter(";
  EXPECT_EQ(compile("struct A {\n" + enter + leave + "};\nSLUICE_PLUGIN(\"a\", \"1.0.0\", A)\n").status, 0);
  for (const std::string& half : {enter, leave}) {
    const CommandResult result = compile("struct A {\n" + half + "};\nSLUICE_PLUGIN(\"a\", \"1.0.0\", A)\n");
    EXPECT_NE(result.status, 0);
    EXPECT_THAT(result.output, HasSubstr(both));
  }
  const CommandResult result = compile(handler("A", enter + leave) + "SLUICE_PLUGIN(\"a\", \"1.0.0\", A)\n");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.output, HasSubstr("a class either handles messages or goes around"));
}

TEST(CompileErrors, AConstructorThatTheHostCannotCall) {
  const CommandResult result = compile(handler("A", "explicit A(int) {}") + "SLUICE_PLUGIN(\"a\", \"1.0.0\", A)\n");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.output, HasSubstr("a handler needs a constructor from (const sluice::Options&, sluice::Host)"));
}

TEST(CompileErrors, APluginWithoutHandlers) {
  const CommandResult result = compile("SLUICE_PLUGIN(\"a\", \"1.0.0\")\n");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.output, HasSubstr("a plugin needs a handler"));
}

TEST(CompileErrors, TwoHandlersOfOneName) {
  const CommandResult result = compile(handler("A", "") + handler("B", "") + "SLUICE_PLUGIN(\"a\", \"1.0.0\", A, B)\n");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.output, HasSubstr("two handlers of this plugin have one name"));
}

TEST(CompileErrors, MembersThatTheSdkReads) {
  const std::string one = "sluice::option<int>(\"n\", \"1\", \"\")";
  const std::string list = "static constexpr sluice::OptionSpec options[] = {";
  const std::string public_list =
      "a handler's options are a public list: static constexpr sluice::OptionSpec options[]";
  const std::string option_names = "an option's name is 1 to 64 letters";
  for (const auto& [members, remark] : std::initializer_list<std::pair<std::string, std::string>>{
           {"private: " + list + one + "}; public:", public_list},
           {"static constexpr sluice::OptionSpec options = " + one + ";", public_list},
           {"int options = 0;", public_list},
           {list + one + ", " + one + "};", option_names},
           {list + "sluice::option<int>(\"my number\", \"1\", \"\")};", option_names},
           {"static constexpr const char* name = \"my handler\";", "a handler's name is 1 to 64 letters"},
           {"static constexpr std::string_view name = \"a\";", "a handler's name is a const char*"},
           {"static constexpr std::string_view help = \"Helps.\";", "a handler's help is a const char*"},
       }) {
    const CommandResult result = compile(handler("A", members) + "SLUICE_PLUGIN(\"a\", \"1.0.0\", A)\n");
    EXPECT_NE(result.status, 0) << members;
    EXPECT_THAT(result.output, HasSubstr(remark)) << members;
  }
  // Names that mean nothing to the SDK where each instance has its own.
  const CommandResult result = compile(handler("A", "std::string name, help; explicit A(const sluice::Options&) {}") +
                                       "SLUICE_PLUGIN(\"a\", \"1.0.0\", A)\n");
  EXPECT_EQ(result.status, 0) << result.output;
}

TEST(CompileErrors, APluginWithANameOrAVersionThatIsNone) {
  for (const char* words : {"\"my plugin\", \"1.0.0\"", "\"\", \"1.0.0\"", "\"a\", \"\"", "\"a\", \"1.0 (beta)\""}) {
    const CommandResult result = compile(handler("A", "") + "SLUICE_PLUGIN(" + words + ", A)\n");
    EXPECT_NE(result.status, 0) << words;
    EXPECT_THAT(result.output, HasSubstr("SLUICE_PLUGIN: name and version are 1 to 64 letters")) << words;
  }
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
