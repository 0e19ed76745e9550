#include "host/plugin/plugin_registry.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/plugin/plugin_fixture.hpp"

namespace sluice::plugin {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The dynamic linker knows files by name and inode for ever, so each test has a folder of its own and copies into it.
class PluginRegistryTest : public ::testing::Test {
 protected:
  void copy(const std::string& fixture, const std::string& name) {
    std::filesystem::copy_file(fixture_file(fixture), folder_.file(name));
  }
  /// Puts a file in the place of another, as a deployment should.
  void replace(const std::string& fixture, const std::string& name) {
    copy(fixture, "new");
    std::filesystem::rename(folder_.file("new"), folder_.file(name));
  }
  void scan() { registry_.scan({folder_.path()}); }
  std::vector<std::string> rejected() const {
    std::vector<std::string> texts;
    for (const RejectedPlugin& plugin : registry_.rejected()) {
      texts.push_back(plugin.why);
    }
    return texts;
  }

  std::string digest(const std::string& fixture) const {
    const auto bytes = SealedFile::copy_of(fixture_file(fixture));
    EXPECT_TRUE(bytes);
    return (*bytes)->sha256();
  }

  TemporaryFolder folder_;
  PluginRegistry registry_;
};

TEST_F(PluginRegistryTest, LoadsWhatIsThereInNameOrder) {
  copy("sleeper", "b.so");
  copy("noop", "a.so");
  copy("fails", "not-a-plugin.txt");
  copy("fails", ".half-copied.so");
  scan();
  ASSERT_EQ(registry_.plugins().size(), 2U);
  EXPECT_EQ(registry_.plugins()[0].file, folder_.file("a.so"));
  EXPECT_STREQ(registry_.plugins()[0].plugin->name, "noop");
  EXPECT_THAT(registry_.handler_names(), ElementsAre("noop", "sleeper"));
  EXPECT_THAT(rejected(), ElementsAre());
  ASSERT_TRUE(registry_.handler("noop"));
  EXPECT_STREQ((*registry_.handler("noop"))->name, "noop");
}

TEST_F(PluginRegistryTest, ScanningAgainFindsOnlyWhatIsNew) {
  copy("noop", "a.so");
  scan();
  const sluice_handler* before = *registry_.handler("noop");
  copy("sleeper", "b.so");
  scan();
  EXPECT_EQ(registry_.plugins().size(), 2U);
  EXPECT_EQ(*registry_.handler("noop"), before);
  EXPECT_THAT(rejected(), ElementsAre());
}

TEST_F(PluginRegistryTest, OfAFolderThatIsSparedWhatIsNeededAloneIsLoadedAndTheRestKnownByName) {
  copy("noop", "a.so");
  copy("sleeper", "b.so");
  std::ofstream(folder_.file("text.so")) << "text";
  registry_.need_only(folder_.path(), {"noop"});
  EXPECT_THAT(registry_.unseen({folder_.path()}), ElementsAre(folder_.file("a.so"), folder_.file("text.so")));
  scan();
  ASSERT_EQ(registry_.plugins().size(), 1U);
  EXPECT_THAT(rejected(), ElementsAre(HasSubstr("text.so is not an ELF shared object"))) << "it may be anything";
  EXPECT_THAT(registry_.handler_names(), ElementsAre("noop", "sleeper"));
  EXPECT_THAT(registry_.handler("sleeped").error().message(), HasSubstr("did you mean \"sleeper\"?"));

  registry_.need_only(folder_.path(), {"sleeper"});
  scan();
  EXPECT_EQ(registry_.plugins().size(), 2U) << "what is loaded stays so";
  EXPECT_STREQ((*registry_.handler("sleeper"))->name, "sleeper");
  registry_.need_only("another", {});
  copy("fails", "c.so");
  scan();
  EXPECT_EQ(registry_.plugins().size(), 3U);
}

TEST_F(PluginRegistryTest, OneBadFileDoesNotKeepTheOthersOut) {
  copy("noop", "good.so");
  copy("bad_magic", "bad.so");
  std::ofstream(folder_.file("text.so")) << "text";
  std::filesystem::create_directory(folder_.file("folder.so"));
  scan();
  EXPECT_THAT(registry_.handler_names(), ElementsAre("noop"));
  EXPECT_THAT(rejected(), ElementsAre(HasSubstr("bad.so has a symbol"), HasSubstr("folder.so is a folder"),
                                      HasSubstr("text.so is not an ELF shared object")));
}

TEST_F(PluginRegistryTest, AFileThatWasMendedIsTakenAtTheNextScan) {
  std::ofstream(folder_.file("a.so")) << "text";
  scan();
  EXPECT_EQ(rejected().size(), 1U);
  replace("noop", "a.so");
  scan();
  EXPECT_THAT(rejected(), ElementsAre());
  EXPECT_THAT(registry_.handler_names(), ElementsAre("noop"));
}

TEST_F(PluginRegistryTest, WhatIsRefusedBeforeLoadingStaysOutUntilItChanges) {
  copy("noop", "a.so");
  copy("sleeper", "b.so");
  EXPECT_THAT(registry_.unseen({folder_.path()}), ElementsAre(folder_.file("a.so"), folder_.file("b.so")));
  registry_.refuse(folder_.file("a.so"), "crashed elsewhere");
  scan();
  EXPECT_THAT(registry_.handler_names(), ElementsAre("sleeper"));
  EXPECT_THAT(rejected(), ElementsAre(folder_.file("a.so") + " crashed elsewhere"));
  EXPECT_THAT(registry_.unseen({folder_.path()}), ElementsAre()) << "it need not be tried again";
  scan();
  EXPECT_EQ(rejected().size(), 1U);
  replace("fails", "a.so");
  EXPECT_THAT(registry_.unseen({folder_.path()}), ElementsAre(folder_.file("a.so")));
  scan();
  EXPECT_THAT(registry_.handler_names(), ElementsAre("fails", "sleeper"));
}

TEST_F(PluginRegistryTest, WhatIsRefusedForWhatAChmodMendsIsLookedAtAgain) {
  copy("noop", "a.so");
  ASSERT_EQ(registry_.unseen({folder_.path()}).size(), 1U);
  registry_.refuse(folder_.file("a.so"), "may be written by everybody");
  scan();
  registry_.look_again(folder_.file("a.so"));
  EXPECT_THAT(rejected(), ElementsAre(HasSubstr("may be written by everybody")));
  EXPECT_THAT(registry_.unseen({folder_.path()}), ElementsAre(folder_.file("a.so")));
  scan();
  EXPECT_THAT(registry_.handler_names(), ElementsAre("noop"));
}

TEST_F(PluginRegistryTest, AFileThatIsReplacedWhileItIsLookedAtStaysOut) {
  copy("noop", "a.so");
  ASSERT_EQ(registry_.unseen({folder_.path()}).size(), 1U);
  replace("sleeper", "a.so");
  scan();
  EXPECT_THAT(registry_.handler_names(), ElementsAre());
  EXPECT_THAT(rejected(), ElementsAre(HasSubstr("has changed while it was looked at")));
  ASSERT_EQ(registry_.unseen({folder_.path()}).size(), 1U);
  scan();
  EXPECT_THAT(registry_.handler_names(), ElementsAre("sleeper"));
}

TEST_F(PluginRegistryTest, AReplacedFileIsLoadedBesideWhatItWas) {
  copy("noop", "a.so");
  scan();
  const sluice_handler* const before = *registry_.handler("noop");
  replace("sleeper", "a.so");
  EXPECT_TRUE(registry_.is_stale(before));
  EXPECT_THAT(registry_.unseen({folder_.path()}), ElementsAre(folder_.file("a.so")));
  scan();
  EXPECT_THAT(rejected(), ElementsAre());
  EXPECT_THAT(registry_.handler_names(), ElementsAre("sleeper"));
  ASSERT_NE(registry_.owner_of(before), nullptr) << "jobs may still run it";
  EXPECT_STREQ(registry_.owner_of(before)->plugin->name, "noop");
  // The same code once more is code of its own too: what it keeps in static variables begins anew.
  replace("noop", "a.so");
  scan();
  EXPECT_NE(*registry_.handler("noop"), before);
  EXPECT_FALSE(registry_.is_stale(*registry_.handler("noop")));
}

TEST_F(PluginRegistryTest, AFileWithTheBytesThatAreLoadedIsNotLoadedAgain) {
  copy("noop", "a.so");
  scan();
  const sluice_handler* const before = *registry_.handler("noop");
  replace("noop", "a.so");
  scan();
  std::filesystem::last_write_time(folder_.file("a.so"), std::filesystem::file_time_type::clock::now());
  scan();
  EXPECT_EQ(*registry_.handler("noop"), before);
  EXPECT_FALSE(registry_.is_stale(before));
  EXPECT_THAT(rejected(), ElementsAre());
}

TEST_F(PluginRegistryTest, WhatWasLoadedStaysInUseWhereTheNewFileIsRefused) {
  copy("noop", "a.so");
  scan();
  const sluice_handler* const before = *registry_.handler("noop");
  replace("major_too_new", "a.so");
  scan();
  EXPECT_THAT(rejected(), ElementsAre(AllOf(HasSubstr("is built for plugin ABI 2.0"),
                                            HasSubstr("; version 1.0.0, which is loaded, stays in use"))));
  EXPECT_EQ(*registry_.handler("noop"), before);
  replace("sleeper", "a.so");
  ASSERT_EQ(registry_.unseen({folder_.path()}).size(), 1U);
  registry_.refuse(folder_.file("a.so"), "crashed elsewhere");
  scan();
  scan();
  EXPECT_THAT(rejected(),
              ElementsAre(folder_.file("a.so") + " crashed elsewhere; version 1.0.0, which is loaded, stays in use"));
  EXPECT_EQ(*registry_.handler("noop"), before);
  replace("fails", "a.so");
  scan();
  EXPECT_THAT(registry_.handler_names(), ElementsAre("fails"));
}

// As cp does: the pages that the host has mapped become others. (Here they are the same ones, with more behind them.)
TEST_F(PluginRegistryTest, AFileThatWasWrittenIntoIsTold) {
  copy("noop", "a.so");
  scan();
  std::ofstream(folder_.file("a.so"), std::ios::app) << "more";
  scan();
  EXPECT_THAT(rejected(), ElementsAre(AllOf(HasSubstr("was written into while this host runs its code"),
                                            HasSubstr("restart the host"), HasSubstr("with mv, not with cp"))));
  EXPECT_THAT(registry_.handler_names(), ElementsAre("noop"));
  replace("sleeper", "a.so");
  scan();
  EXPECT_THAT(registry_.handler_names(), ElementsAre("sleeper"));
}

TEST_F(PluginRegistryTest, AFileThatWasRefusedIsRefusedAgainAndLoadedOnceMended) {
  copy("zero_handlers", "a.so");
  scan();
  scan();
  EXPECT_THAT(rejected(), ElementsAre(HasSubstr("has no handlers")));
  replace("noop", "a.so");
  scan();
  EXPECT_THAT(registry_.handler_names(), ElementsAre("noop"));
}

TEST_F(PluginRegistryTest, ARemovedFileStaysInUse) {
  copy("noop", "a.so");
  scan();
  std::filesystem::remove(folder_.file("a.so"));
  scan();
  EXPECT_THAT(registry_.handler_names(), ElementsAre("noop"));
  EXPECT_THAT(rejected(), ElementsAre());
}

TEST_F(PluginRegistryTest, OneFileByTwoNamesIsOnePlugin) {
  copy("noop", "a.so");
  std::filesystem::create_symlink(folder_.file("a.so"), folder_.file("b.so"));
  registry_.scan({folder_.path(), folder_.path() + "/."});
  EXPECT_EQ(registry_.plugins().size(), 1U);
  EXPECT_TRUE(registry_.handler("noop"));
}

TEST_F(PluginRegistryTest, AHandlerThatTwoPluginsOfferIsAmbiguous) {
  copy("noop", "a.so");
  copy("noop", "b.so");
  scan();
  EXPECT_EQ(registry_.plugins().size(), 2U);
  const auto handler = registry_.handler("noop");
  ASSERT_FALSE(handler);
  EXPECT_EQ(handler.error().code(), ErrorCode::invalid);
  EXPECT_THAT(handler.error().message(), AllOf(HasSubstr("two plugins offer the handler \"noop\""),
                                               HasSubstr(folder_.file("a.so")), HasSubstr(folder_.file("b.so"))));
}

TEST_F(PluginRegistryTest, OneOfTwoPluginsWhoseFileIsTakenAwayGivesWay) {
  copy("noop", "a.so");
  copy("noop", "b.so");
  scan();
  EXPECT_THAT(registry_.handler("noop").error().message(), HasSubstr("take one away, then start or reload the host"));
  for (const char* const gone : {"a.so", "b.so"}) {
    std::filesystem::remove(folder_.file(gone));
    scan();
    ASSERT_TRUE(registry_.handler("noop")) << "what runs on has its handler";
  }
}

TEST_F(PluginRegistryTest, AMissingHandlerNamesWhatIsNearAndWhereItLooked) {
  copy("sleeper", "a.so");
  copy("no_entry", "b.so");
  scan();
  EXPECT_THAT(registry_.handler("sleper").error().message(),
              AllOf(HasSubstr("no plugin offers the handler \"sleper\"; did you mean \"sleeper\"?"),
                    HasSubstr("looked in " + folder_.path()), HasSubstr("not usable: " + folder_.file("b.so")),
                    HasSubstr("has no symbol sluice_plugin_v1")));
  EXPECT_THAT(registry_.handler("webhook").error().message(), HasSubstr("there are: sleeper"));
}

TEST_F(PluginRegistryTest, AMissingHandlerGivesTheReasonsOfAFewUnusableFilesAndCountsTheOthers) {
  for (const std::string name : {"a.so", "b.so", "c.so", "d.so", "e.so"}) {
    copy("major_too_new", name);
  }
  scan();
  const std::string text = registry_.handler("major_too_new").error().message();
  EXPECT_THAT(text, AllOf(HasSubstr(folder_.file("a.so") + " is built for plugin ABI 2.0"),
                          HasSubstr(folder_.file("c.so")), Not(HasSubstr(folder_.file("d.so")))));
  EXPECT_THAT(text, HasSubstr("; and 2 more, which `sluice plugins` lists)"));
}

TEST_F(PluginRegistryTest, APinnedFileIsLoadedFromTheBytesThatWereCompared) {
  copy("noop", "a.so");
  const config::PluginPin pin{"a.so", digest("noop"), {}};
  registry_.pin({{pin.file, pin.sha256}});
  scan();
  ASSERT_EQ(rejected(), std::vector<std::string>());
  const auto handler = registry_.handler("noop", pin);
  ASSERT_TRUE(handler) << handler.error().message();
  const auto& bytes = registry_.plugins()[0].bytes;
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(::fcntl(bytes->descriptor(), F_GET_SEALS) & F_SEAL_WRITE, F_SEAL_WRITE);
  std::ofstream(folder_.file("a.so"), std::ios::in) << std::string(4096, '\0');
  EXPECT_STREQ((*handler)->name, "noop") << "what is written into the file does not reach what was loaded";
  EXPECT_THAT(registry_.handler("other", pin).error().message(), HasSubstr("has no handler \"other\""));
}

// The dynamic linker tells a debugger by which name it found the library, and the debugger reads its symbols there.
TEST_F(PluginRegistryTest, ADebuggerFindsTheBytesOfAPinnedFileByItsName) {
  copy("noop", "a.so");
  registry_.pin({{"a.so", digest("noop")}});
  scan();
  ASSERT_EQ(rejected(), std::vector<std::string>());
  Dl_info loaded{};
  ASSERT_NE(::dladdr(registry_.plugins()[0].plugin, &loaded), 0);
  const std::string compare = std::string("cmp ") + loaded.dli_fname + " " + folder_.file("a.so");
  EXPECT_EQ(std::system(compare.c_str()), 0);
}

// Its start-up code ends the process that runs it.
TEST_F(PluginRegistryTest, NoCodeOfAFileWithAnotherDigestRuns) {
  copy("crashes_at_load", "a.so");
  const config::PluginPin pin{"a.so", digest("noop"), {}};
  registry_.pin({{pin.file, pin.sha256}});
  scan();
  EXPECT_THAT(rejected(), ElementsAre(AllOf(HasSubstr(folder_.file("a.so") + " has the sha256 "),
                                            HasSubstr(digest("crashes_at_load")), HasSubstr("pins " + pin.sha256))));
  EXPECT_EQ(registry_.handler("noop", pin).error().message(), rejected().front());
  replace("noop", "a.so");
  scan();
  EXPECT_TRUE(registry_.handler("noop", pin));
}

TEST_F(PluginRegistryTest, APinHoldsForItsFileInEveryFolderAndForNoOtherFile) {
  std::filesystem::create_directory(folder_.file("first"));
  copy("crashes_at_load", "first/a.so");
  copy("noop", "a.so");
  copy("noop", "b.so");
  const config::PluginPin pin{"a.so", digest("noop"), {}};
  registry_.pin({{pin.file, pin.sha256}});
  registry_.scan({folder_.file("first"), folder_.path()});
  const auto handler = registry_.handler("noop", pin);
  ASSERT_TRUE(handler) << handler.error().message();
  EXPECT_EQ(*handler, registry_.plugins()[0].plugin->handlers[0]);
  EXPECT_FALSE(registry_.handler("noop")) << "whoever pins nothing has two to choose from";
  EXPECT_THAT(registry_.handler("noop", {"c.so", pin.sha256, {}}).error().message(),
              HasSubstr("there is no c.so, which the job pins, in " + folder_.file("first")));
}

TEST_F(PluginRegistryTest, APinLoadsAFileAnewThatWasLoadedWithoutOne) {
  copy("noop", "a.so");
  scan();
  const sluice_handler* const before = *registry_.handler("noop");
  const config::PluginPin pin{"a.so", digest("noop"), {}};
  registry_.pin({{pin.file, pin.sha256}});
  EXPECT_TRUE(registry_.is_stale(before));
  scan();
  const auto pinned = registry_.handler("noop", pin);
  ASSERT_TRUE(pinned) << pinned.error().message();
  EXPECT_NE(*pinned, before);
  EXPECT_FALSE(registry_.is_stale(*pinned));
}

TEST_F(PluginRegistryTest, APinnedFileThatChangesIsRefusedUntilThePinDoes) {
  copy("noop", "a.so");
  const config::PluginPin pin{"a.so", digest("noop"), {}};
  registry_.pin({{pin.file, pin.sha256}});
  scan();
  const auto before = registry_.handler("noop", pin);
  ASSERT_TRUE(before);
  replace("sleeper", "a.so");
  scan();
  EXPECT_THAT(rejected(),
              ElementsAre(AllOf(HasSubstr("has the sha256 " + digest("sleeper")), HasSubstr("stays in use"))));
  EXPECT_EQ(*registry_.handler("noop", pin), *before);
  const config::PluginPin next{"a.so", digest("sleeper"), {}};
  EXPECT_THAT(registry_.handler("sleeper", next).error().message(), HasSubstr("has the sha256 " + digest("sleeper")));
  registry_.pin({{next.file, next.sha256}});
  scan();
  EXPECT_TRUE(registry_.handler("sleeper", next));
  EXPECT_THAT(registry_.handler("noop", pin).error().message(),
              AllOf(HasSubstr("was loaded with the sha256 " + digest("sleeper")), HasSubstr("pins " + pin.sha256)));
}

TEST_F(PluginRegistryTest, APinDoesNotBringInWhatWasRefused) {
  copy("noop", "a.so");
  registry_.pin({{"a.so", digest("noop")}});
  scan();
  replace("sleeper", "a.so");
  registry_.pin({{"a.so", digest("sleeper")}});
  EXPECT_THAT(registry_.unseen({folder_.path()}), ElementsAre(folder_.file("a.so")));
  registry_.refuse(folder_.file("a.so"), "crashed elsewhere");
  scan();
  EXPECT_THAT(rejected(), ElementsAre(HasSubstr("crashed elsewhere")));
  EXPECT_THAT(registry_.handler_names(), ElementsAre("noop"));
}

TEST_F(PluginRegistryTest, AFolderThatIsNotThereIsReported) {
  registry_.scan({folder_.file("absent")});
  EXPECT_THAT(rejected(),
              ElementsAre(AllOf(HasSubstr("absent cannot be read: No such file"), HasSubstr("plugin_dirs"))));
  EXPECT_THAT(registry_.handler("x").error().message(), HasSubstr("there are no handlers at all"));
  registry_.scan({});
  EXPECT_THAT(registry_.handler("x").error().message(), HasSubstr("looked in no folder"));
}

}  // namespace
}  // namespace sluice::plugin
