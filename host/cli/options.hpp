#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "host/cli/command.hpp"
#include "host/operate/filter.hpp"
#include "host/operate/send_run.hpp"
#include "host/queue/message.hpp"

/// The options that many commands have: each is declared once, and read in one place.
namespace sluice::cli {

/// One list of flags behind another.
std::vector<Flag> joined(std::vector<Flag> first, const std::vector<Flag>& second);
/// `flags` but for the one of that name, which means nothing to a command.
std::vector<Flag> without_flag(std::vector<Flag> flags, std::string_view name);
/// The flag with another value of a member; below, what is said so of many.
template <typename Value>
Flag set(Value Flag::*member, Value value, Flag flag) {
  flag.*member = value;
  return flag;
}
inline Flag required(const Flag& flag) { return set(&Flag::required, true, flag); }
inline Flag repeated(const Flag& flag) { return set(&Flag::repeated, true, flag); }
inline Flag filled(const Flag& flag) { return set(&Flag::filled, true, flag); }
inline Flag alone(const Flag& flag) { return filled(set(&Flag::alone, true, flag)); }
inline Flag one_of(const Flag& flag) { return set(&Flag::one_of, true, flag); }
inline Flag only_with(std::string_view other, const Flag& flag) { return set(&Flag::with, other, flag); }
inline Flag against(std::string_view others, const Flag& flag) { return set(&Flag::against, others, flag); }

/// Lines and tables are made to fit into a terminal, but with this.
inline constexpr Flag kWideFlag{"wide", {}, "whole lines, however narrow the terminal is"};
/// --output json|text and --json, read by `Arguments::output`; and --wide.
std::vector<Flag> output_flags();
/// The same for commands that show text elsewhere too.
std::vector<Flag> text_output_flags();

/// Of every command with a host file.
inline constexpr Flag kConfigFlag{"config", "FILE", "host file [default: host.toml, else /etc/sluice/host.toml]"};
/// Of commands that load plugins.
inline constexpr const char* kAllowInsecureFiles = "allow-insecure-files";
inline constexpr Flag kAllowInsecureFilesFlag{
    kAllowInsecureFiles, {}, "use plugins and configuration that other users may write; for laptops"};

/// Whether a command takes the rows of an outbox for a queue's messages, by --outbox.
enum class Outboxes { taken, not_taken };
/// A command's own flags, and after them those that say where its queue is: --queue, --outbox, --config, --table,
/// --index, --endpoint, --region. The queue may stand as a plain word too: where no other plain word belongs to the
/// command, and else before the ids or the key that do (`begins_with_queue`).
std::vector<Flag> with_place_flags(std::vector<Flag> own, Outboxes outboxes);
/// The same, and --output: the flags of every command on queues.
std::vector<Flag> with_store_flags(std::vector<Flag> own, Outboxes outboxes = Outboxes::taken);

inline constexpr Flag kYesFlag{"yes", {}, "do not ask"};
/// Asks on the terminal, unless there is --yes or --dry-run; exit 1 for any answer but yes, saying that nothing was
/// "removed".
OrExit<void> confirmed(const Arguments& arguments, Console& console, std::string_view question, std::string_view done);
/// What a command does with many messages is a count on a terminal; each of them by its id elsewhere, or with --ids.
inline constexpr Flag kIdsFlag{"ids", {}, "list the messages on a terminal too, in place of a count"};
bool lists_ids(const Arguments& arguments, const Console& console);
/// Of commands that put messages into a queue.
inline constexpr Flag kCreateFlag{"create", {}, "make the queue where nobody knows it yet"};
/// The half of its queue that --dlq names.
inline constexpr Flag kDlqFlag{"dlq", {}, "its dead-letter half instead"};
queue::Half half_of(const Arguments& arguments);
/// With --both both of them.
std::vector<queue::Half> halves_of(const Arguments& arguments);
/// Says in a table that its index may lag behind; elsewhere nothing lags.
inline constexpr Flag kConsistentFlag{
    "consistent", {}, "read the whole table, not its index, which lags behind writes"};

/// Of commands that change messages.
inline constexpr Flag kReasonFlag{"reason", "TEXT", "why, for `sluice audit`"};

/// "100/s", "30/m" or "100", as messages a second; 0 where it is not given.
inline constexpr Flag kRateFlag{"rate", "N/s", "at most N messages a second (/m: a minute)"};
OrExit<double> parse_rate(const Arguments& arguments);

/// --where, --older-than, --error and --error-like of a command that chooses among messages.
std::vector<Flag> filter_flags();
/// What they ask for; everything when none of them is given. Exit 64 names the column of a syntax error in --where and
/// points at it.
OrExit<operate::Filter> parse_filter(const Arguments& arguments);

inline constexpr Flag kIdFlag{.name = "id",
                              .value = "ID",
                              .help = "a message, as the plain word ID; may be repeated",
                              .repeated = true,
                              .alone = true};
/// The ids that were given, each once and in order.
std::vector<std::string> message_ids(const Arguments& arguments);
/// The one id of a command on one message; exit 64 for none and for several.
OrExit<std::string> the_message_id(const Arguments& arguments);

/// Reads --delay, --attr, --content-type, --group, --priority and the keys of `sluice send`; exit 64 for what is wrong
/// with them.
OrExit<operate::MessageTemplate> read_template(const Arguments& arguments);

/// The file that an option names, to read it line by line; exit 1 where that cannot be.
OrExit<Descriptor> open_named(const Arguments& arguments, const std::string& option);
/// The whole file that an option names; exit 1 where it cannot be read, or is larger than any message.
OrExit<std::string> read_named(const Arguments& arguments, const std::string& option);
/// Makes the folder that this is to lie in; exit 1 where that cannot be.
OrExit<void> make_folder_of(const std::filesystem::path& path);
/// Writes a file, and makes the folders that it is to lie in; exit 1 where that cannot be.
OrExit<void> write_file(const std::filesystem::path& path, const std::string& text);

/// "1 message", "3 messages".
std::string counted(std::uint64_t count, const std::string& noun);

}  // namespace sluice::cli
