#include "host/plugin/plugin_registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/testing.hpp"

namespace sluice::plugin {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

struct Any {
  sluice::Outcome handle(const sluice::Message&, sluice::Context&) const { return sluice::done(); }
};

/// A plugin that is in order, for tests to break.
struct PluginInOrder {
  sluice_option option{sizeof(sluice_option), SLUICE_OPTION_STRING, 0, 0, "text", nullptr, nullptr};
  const sluice_option* options[2] = {&option, &option};
  sluice_handler handler = sluice::testing::handler<Any>();
  const sluice_handler* handlers[2] = {&handler, &handler};
  sluice_plugin plugin{sizeof(sluice_plugin),
                       SLUICE_ABI_MAJOR,
                       SLUICE_PLUGIN_MAGIC,
                       SLUICE_ABI_MINOR,
                       0,
                       "plugin",
                       "1.0.0",
                       handlers,
                       1};

  std::optional<std::string> refusal(std::size_t symbol_size = sizeof(sluice_plugin)) const {
    return refuse_plugin(plugin, symbol_size);
  }
};

TEST(PluginCheck, AcceptsWhatIsInOrder) {
  PluginInOrder table;
  table.handler.options = table.options;
  table.handler.option_count = 1;
  EXPECT_EQ(table.refusal(), std::nullopt);
  EXPECT_EQ(table.refusal(0), std::nullopt) << "a file need not say how large its symbol is";
}

TEST(PluginCheck, AcceptsStructsThatHaveGrown) {
  PluginInOrder table;
  table.handler.struct_size += 8;
  EXPECT_EQ(table.refusal(), std::nullopt);
}

TEST(PluginCheck, RefusesASymbolThatIsSmallerThanItSays) {
  const PluginInOrder table;
  EXPECT_THAT(table.refusal(4), Optional(HasSubstr("of 4 bytes")));
  EXPECT_THAT(table.refusal(sizeof(sluice_plugin) - 8), Optional(HasSubstr("rebuild it with the SDK")));
}

TEST(PluginCheck, RefusesOtherMajorVersionsInBothDirections) {
  PluginInOrder table;
  table.plugin.abi_major = 0;
  EXPECT_THAT(table.refusal(), Optional(HasSubstr("ABI 0.0, and this host runs ABI 1.0: rebuild the plugin")));
  table.plugin.abi_major = 2;
  EXPECT_THAT(table.refusal(), Optional(HasSubstr("ABI 2.0, and this host runs ABI 1.0: update the host")));
}

TEST(PluginCheck, TheMajorVersionIsJudgedBeforeAnythingThatItMayHaveChanged) {
  PluginInOrder table;
  table.plugin.abi_major = 2;
  table.plugin.struct_size = 24;
  table.plugin.name = nullptr;
  EXPECT_THAT(table.refusal(), Optional(HasSubstr("ABI 2.0")));
}

TEST(PluginCheck, RefusesBadNames) {
  for (const char* name : {static_cast<const char*>(nullptr), "", "two words", "new\nline", "slash/", "\xc3\xa9",
                           "0123456789012345678901234567890123456789012345678901234567890123456789"}) {
    PluginInOrder table;
    table.plugin.name = name;
    EXPECT_THAT(table.refusal(), Optional(HasSubstr("has a name that is not")));
    table = {};
    table.handler.name = name;
    table.handlers[0] = &table.handler;
    table.plugin.handlers = table.handlers;
    EXPECT_THAT(table.refusal(), Optional(HasSubstr("has a handler whose name is not")));
  }
}

TEST(PluginCheck, RefusesBadVersions) {
  PluginInOrder table;
  for (const char* version : {static_cast<const char*>(nullptr), "", "1 0"}) {
    table.plugin.version = version;
    EXPECT_THAT(table.refusal(), Optional(HasSubstr("has a version that is not")));
  }
  table.plugin.version = "1.0.0-rc.1+build.5";
  EXPECT_EQ(table.refusal(), std::nullopt);
}

TEST(PluginCheck, RefusesBadHandlerLists) {
  PluginInOrder table;
  table.plugin.handlers = nullptr;
  EXPECT_THAT(table.refusal(), Optional(HasSubstr("has no handlers")));
  table.plugin.handlers = table.handlers;
  table.plugin.handler_count = 1'000'000;
  EXPECT_THAT(table.refusal(), Optional(HasSubstr("at most 64")));
  table.plugin.handler_count = 2;
  EXPECT_THAT(table.refusal(), Optional(HasSubstr("two handlers named \"handler\"")));
  table.handlers[1] = nullptr;
  EXPECT_THAT(table.refusal(), Optional(HasSubstr("a handler that is NULL")));
}

TEST(PluginCheck, RefusesMissingFunctions) {
  const auto refusal = [](auto sluice_handler::*function) {
    PluginInOrder table;
    table.handler.*function = nullptr;
    return table.refusal();
  };
  EXPECT_THAT(refusal(&sluice_handler::create), Optional(HasSubstr("no function `create`")));
  EXPECT_THAT(refusal(&sluice_handler::destroy), Optional(HasSubstr("no function `destroy`")));
  EXPECT_THAT(refusal(&sluice_handler::handle), Optional(HasSubstr("no function `handle`")));
}

TEST(PluginCheck, RefusesTooSmallStructs) {
  PluginInOrder table;
  table.handler.struct_size = 8;
  EXPECT_THAT(table.refusal(), Optional(HasSubstr("sluice_handler of 8 bytes")));
  table.handler.struct_size = sizeof(sluice_handler);
  table.handler.options = table.options;
  table.handler.option_count = 1;
  table.option.struct_size = 8;
  EXPECT_THAT(table.refusal(), Optional(HasSubstr("sluice_option of 8 bytes")));
}

TEST(PluginCheck, RefusesBadOptionLists) {
  PluginInOrder table;
  table.handler.option_count = 1;
  table.handler.options = nullptr;
  EXPECT_THAT(table.refusal(), Optional(HasSubstr("declares 1 options")));
  table.handler.options = table.options;
  table.handler.option_count = 100'000;
  EXPECT_THAT(table.refusal(), Optional(HasSubstr("at most 256")));
  table.handler.option_count = 2;
  EXPECT_THAT(table.refusal(), Optional(HasSubstr("\"text\" twice")));
  table.options[0] = nullptr;
  EXPECT_THAT(table.refusal(), Optional(HasSubstr("an option that is NULL")));
  table.options[0] = &table.option;
  table.option.type = 99;
  EXPECT_THAT(table.refusal(), Optional(HasSubstr("unknown type 99")));
  table.option.name = "bad name";
  EXPECT_THAT(table.refusal(), Optional(HasSubstr("an option whose name is not")));
}

TEST(PluginCheck, RefusesEndlessHelp) {
  PluginInOrder table;
  const std::string help(5000, 'x');
  table.handler.help = help.c_str();
  EXPECT_THAT(table.refusal(), Optional(HasSubstr("a help text of more than 4096 bytes")));
}

}  // namespace
}  // namespace sluice::plugin
