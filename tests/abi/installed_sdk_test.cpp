// The SDK as an author has it: installed under a prefix, found by find_package, used out of tree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "base/clock.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/plugin/plugin_file.hpp"
#include "host/plugin/plugin_registry.hpp"
#include "tests/abi/command.hpp"

namespace sluice::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// An installed SDK in a folder of its own, for one compiler.
class InstalledSdkTest : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr const char* kWarnings = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror";

  void SetUp() override {
    if (std::string(GetParam()).find("NOTFOUND") != std::string::npos) {
      GTEST_SKIP() << "THIS COMPILER IS NOT INSTALLED; out-of-tree plugins are not tested with it";
    }
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-sdk-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    succeeds(std::string(SLUICE_CMAKE) + " --install '" SLUICE_BINARY_DIR "' --component sdk --prefix " +
             path("prefix"));
  }
  void TearDown() override {
    if (!root_.empty()) {
      std::filesystem::remove_all(root_);
    }
  }

  std::string path(const std::string& name) const { return (root_ / name).string(); }
  static void succeeds(const std::string& command) {
    const CommandResult result = run(command);
    ASSERT_EQ(result.status, 0) << command << '\n' << result.output;
  }
  /// Configures the project in a copied folder; the output of that.
  CommandResult configure(const std::string& source, const std::string& build, const std::string& more = {}) const {
    // In a copy, as an author has it, so that nothing of the tree around it is found by accident.
    std::filesystem::copy(source, path(build + "-source"), std::filesystem::copy_options::recursive);
    return run(std::string("env -u CXXFLAGS -u LDFLAGS ") + SLUICE_CMAKE + " -S " + path(build + "-source") + " -B " +
               path(build) + " -DCMAKE_PREFIX_PATH=" + path("prefix") + " -DCMAKE_CXX_COMPILER=" + GetParam() +
               " -DCMAKE_CXX_FLAGS='" + kWarnings + "' -DCMAKE_C_FLAGS='" + kWarnings + "' -DCMAKE_BUILD_TYPE=Debug " +
               more);
  }
  void build(const std::string& source, const std::string& build) const {
    const CommandResult configured = configure(source, build);
    ASSERT_EQ(configured.status, 0) << configured.output;
    succeeds(std::string(SLUICE_CMAKE) + " --build " + path(build) + " --parallel 2");
  }
  /// A project of that name and kind, as `sluice new plugin` makes it.
  void make_project(const std::string& name, const std::string& kind) const {
    succeeds("'" SLUICE_BINARY "' new plugin " + name + (kind.empty() ? "" : " --" + kind) + " --dir " +
             path("projects/" + name));
  }

  std::filesystem::path root_;
};

/// What CMake and the linker say is the same whatever compiles.
class InstalledSdkOnceTest : public InstalledSdkTest {};

TEST_P(InstalledSdkOnceTest, HasEveryHeader) {
  std::size_t count = 0;
  const std::filesystem::path source = SLUICE_SOURCE_DIR "/sdk/include";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source)) {
    if (entry.is_regular_file()) {
      const std::string name = std::filesystem::relative(entry.path(), source).string();
      EXPECT_TRUE(std::filesystem::exists(path("prefix/include/" + name))) << name;
      ++count;
    }
  }
  EXPECT_GT(count, 0U);
}

TEST_P(InstalledSdkTest, BuildsTheGreeterAndTheHostRunsIt) {
  build(SLUICE_SOURCE_DIR "/plugins/greeter", "greeter");
  EXPECT_THAT(exported_symbols(path("greeter/greeter.so")), ElementsAre("sluice_plugin_v1"));
  succeeds("strip -o " + path("stripped.so") + " " + path("greeter/greeter.so"));
  const auto stripped = plugin::read_plugin_file(path("stripped.so"));
  ASSERT_TRUE(stripped) << stripped.error().message();
  EXPECT_TRUE(stripped->stripped);
  ASSERT_NE(stripped->note, nullptr);
  EXPECT_STREQ(stripped->note->table().name, "greeter");

  plugin::PluginRegistry registry;
  registry.scan({path("greeter")});
  const auto handler = registry.handler("greeter");
  ASSERT_TRUE(handler) << handler.error().message();
  std::string logged;
  const auto log = [&](sluice_log_level, std::string_view, std::string_view, std::string_view text) { logged = text; };
  const auto instance = plugin::HandlerInstance::create({log}, **handler, "job", {});
  ASSERT_TRUE(instance);
  const SystemClock clock;
  plugin::Attempt attempt(clock);
  queue::Message message;
  message.body = "world";
  EXPECT_EQ((*instance)->handle({message, "q", 0, attempt}).status, plugin::OutcomeStatus::done);
  EXPECT_EQ(logged, "hello, world");
}

TEST_P(InstalledSdkTest, BuildsEachNewPluginItsTestsPassAndTheHostLoadsIt) {
  const std::map<std::string, std::string> kinds{
      {"plain", ""}, {"classic", "c"}, {"many", "batch"}, {"later", "async"}};
  std::string all = "cmake_minimum_required(VERSION 3.25)\nproject(all LANGUAGES C CXX)\nenable_testing()\n";
  for (const auto& [name, kind] : kinds) {
    make_project(name, kind);
    all += "add_subdirectory(" + name + ")\n";
  }
  std::ofstream(path("projects/CMakeLists.txt")) << all;
  build(path("projects"), "built");
  succeeds("ctest --test-dir " + path("built") + " --output-on-failure -LE validate");
  for (const auto& [name, kind] : kinds) {
    EXPECT_THAT(exported_symbols(path("built/" + name + "/" + name + ".so")), ElementsAre("sluice_plugin_v1"));
    plugin::PluginRegistry registry;
    registry.scan({path("built/" + name)});
    EXPECT_TRUE(registry.handler(name)) << name;
  }
}

TEST_P(InstalledSdkOnceTest, IsNamedByANewPluginThatDoesNotFindIt) {
  make_project("alone", "");
  const CommandResult configured =
      configure(path("projects/alone"), "alone", "-DCMAKE_DISABLE_FIND_PACKAGE_sluice-sdk=ON");
  EXPECT_NE(configured.status, 0);
  EXPECT_THAT(configured.output, HasSubstr("Version 1 of the Sluice SDK is not installed"));
}

TEST_P(InstalledSdkOnceTest, NamesMistakesWhenAPluginIsBuilt) {
  const std::string handler =
      "#include <sluice/handler.hpp>\nint nobody();\nstruct H { sluice::Outcome handle(const sluice::Message&, "
      "sluice::Context&) { return sluice::done(); } };\n";
  std::filesystem::create_directory(path("open"));
  std::ofstream(path("open/CMakeLists.txt"))
      << "cmake_minimum_required(VERSION 3.25)\nproject(open LANGUAGES CXX)\n"
         "find_package(sluice-sdk 1 REQUIRED)\nsluice_add_plugin(open open.cpp)\n"
         "sluice_add_plugin(bare bare.cpp)\nsluice_add_plugin(inner bare.cpp)\n"
         "add_library(parts STATIC parts.cpp)\ntarget_link_libraries(parts PRIVATE sluice::sdk)\n"
         "set_target_properties(parts PROPERTIES POSITION_INDEPENDENT_CODE ON)\n"
         "target_link_libraries(inner PRIVATE parts)\n";
  std::ofstream(path("open/open.cpp")) << handler << "int at_load = nobody();\nSLUICE_PLUGIN(\"open\", \"1\", H)\n";
  std::ofstream(path("open/bare.cpp")) << handler;
  std::ofstream(path("open/parts.cpp")) << handler << "SLUICE_PLUGIN(\"inner\", \"1\", H)\n";
  ASSERT_EQ(configure(path("open"), "open-build").status, 0);
  const auto built = [this](const std::string& target) {
    return run(std::string(SLUICE_CMAKE) + " --build " + path("open-build") + " --target " + target);
  };
  EXPECT_THAT(built("open").output, HasSubstr("undefined reference"));
  const CommandResult bare = built("bare");
  EXPECT_NE(bare.status, 0);
  EXPECT_THAT(bare.output, HasSubstr("sluice_add_plugin(bare): no source has SLUICE_PLUGIN"));
  EXPECT_FALSE(std::filesystem::exists(path("open-build/bare.so")));
  const CommandResult inner = built("inner");
  EXPECT_EQ(inner.status, 0) << inner.output << "\nSLUICE_PLUGIN may stand in a static library that is linked in";
}

TEST_P(InstalledSdkOnceTest, IsNotFoundUnderAnotherMajorVersion) {
  std::filesystem::create_directory(path("future"));
  std::ofstream(path("future/CMakeLists.txt"))
      << "cmake_minimum_required(VERSION 3.25)\nproject(future LANGUAGES CXX)\n"
         "find_package(sluice-sdk 2 REQUIRED)\n";
  const CommandResult configured = configure(path("future"), "future-build");
  EXPECT_NE(configured.status, 0);
  EXPECT_THAT(configured.output, HasSubstr("version: 1.0.0"));
}

INSTANTIATE_TEST_SUITE_P(Gcc, InstalledSdkTest, ::testing::Values(SLUICE_GXX));
INSTANTIATE_TEST_SUITE_P(Gcc, InstalledSdkOnceTest, ::testing::Values(SLUICE_GXX));
INSTANTIATE_TEST_SUITE_P(Clang, InstalledSdkTest, ::testing::Values(SLUICE_CLANGXX));

}  // namespace
}  // namespace sluice::test
