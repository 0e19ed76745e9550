#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/shell_word.hpp"
#include "base/temporary_folder.hpp"
#include "host/cli/command.hpp"
#include "host/cli/commands/bulk.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/operate/content_document.hpp"

namespace sluice::cli {

namespace {

/// $VISUAL, $EDITOR, or vi where there is a terminal; empty when there is none.
std::string editor_command(bool terminal) {
  for (const char* const name : {"VISUAL", "EDITOR"}) {
    if (const auto command = config::process_environment()(name); !command.value_or("").empty()) {
      return *command;
    }
  }
  return terminal ? "vi" : "";
}

/// Opens the file with that command, which may have options, and waits for its end. An error when it cannot be run or
/// ends with another code than 0. Ctrl-C is the editor's meanwhile.
Result<void> run_editor(const std::string& command, const std::string& path) {
  const int status = std::system((command + " " + shell_word(path)).c_str());
  if (status < 0) {
    return Error(ErrorCode::internal, "cannot run the editor " + command + ": " + std::strerror(errno));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    return {};
  }
  return Error(ErrorCode::cancelled, "the editor " + command + " ended with " +
                                         (WIFEXITED(status) ? "code " + std::to_string(WEXITSTATUS(status))
                                                            : "signal " + std::to_string(WTERMSIG(status))));
}

using Edits = std::vector<queue::ContentEdit>;

/// What --set and --unset ask for, --unset last.
OrExit<Edits> parse_edits(const Arguments& arguments) {
  Edits edits;
  for (const std::string& text : arguments.all("set")) {
    SLUICE_TRY(edit, or_usage(operate::parse_assignment(text), "--set "));
    edits.push_back(std::move(*edit));
  }
  for (const std::string& text : arguments.all("unset")) {
    SLUICE_TRY(path, or_usage(operate::parse_edit_path(text), "--unset "));
    edits.push_back({.path = std::move(*path), .json = std::nullopt});
  }
  return edits;
}

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return file ? Result<std::string>(std::move(text)) : Error(ErrorCode::internal, "cannot read " + path + " again");
}

/// Has the message's content edited, in a folder that only this user may look into, until the store takes it or its
/// author gives up. The folder goes with the call unless it has text that is not in the store. `is_edited`: whether the
/// message was changed.
Exit with_editor(QueueSession& session, const queue::StoredMessage& message, Console& console, bool& is_edited) {
  const std::string command = editor_command(console.interactive());
  if (command.empty()) {
    return Exit::usage("there is no terminal for an editor; set EDITOR, or write --set PATH=VALUE");
  }
  SLUICE_TRY(folder, TemporaryFolder::make("sluice-edit"));
  const std::string path = (*folder)->path() + "/message.json";
  const std::string document = operate::content_document(message);
  SLUICE_PASS_ON(write_file(path, document));
  const auto keep = [&](const std::string& why) {
    (*folder)->keep();
    return Exit::failure(why + "; your text is in " + path);
  };
  while (true) {
    const auto ended = run_editor(command, path);
    const auto text = read_text(path);
    if (!ended || !text) {
      const std::string why = (ended ? text.error() : ended.error()).message() + "; nothing was changed";
      std::error_code ignored;
      return (text ? *text != document : std::filesystem::exists(path, ignored)) ? keep(why) : Exit::failure(why);
    }
    const auto edits = operate::content_edits(message, *text);
    if (edits && edits->empty()) {
      console.note("sluice edit: nothing was changed");
      return Exit::ok();
    }
    const auto edited = edits ? session.oper().edit(message.message.id, message.version, *edits, session.deadline())
                              : Result<queue::StoredMessage>(edits.error());
    if (edited) {
      is_edited = true;
      return show_message(*edited, session.clock().wall_now(), console);
    }
    if (edited.error().code() != ErrorCode::invalid) {
      return keep(session.explained(edited.error()));
    }
    // Its author can mend what cannot be read, or what the store cannot hold.
    if (!console.interactive()) {
      return keep(edited.error().message());
    }
    console.note(edited.error().message());
    if (!console.confirm("Edit again?")) {
      return keep("nothing was changed");
    }
  }
}

/// The message to be edited if it still has its version; exit 1 when it is in flight and there is no --force.
OrExit<queue::StoredMessage> unclaimed(QueueSession& session, const std::string& id, const Arguments& arguments) {
  SLUICE_TRY(found, session.checked(session.oper().get(id, session.deadline())));
  if (arguments.has("force")) {
    return std::move(*found);
  }
  // Who is at work by its record need not be asked for.
  auto why = operate::in_flight(*found, {}, session.clock().wall_now());
  if (!why) {
    SLUICE_TRY(ask, at_work_as_hosts_tell(session, arguments));
    why = operate::in_flight(*found, *ask ? (*ask)() : operate::AtWork(), session.clock().wall_now());
  }
  if (why) {
    return Exit::failure("message " + id + " " + why->message() + "; wait for its handler, or add --force");
  }
  return std::move(*found);
}

Exit edit_by_hand(const Arguments& arguments, Console& console) {
  SLUICE_TRY(id, the_message_id(arguments));
  SLUICE_TRY(session, QueueSession::open(arguments));
  SLUICE_TRY(found, unclaimed(*session, *id, arguments));
  session->oper().begin(
      {.what = "edit message " + *id + " of queue " + session->queue(), .reason = arguments.get("reason")});
  bool is_edited = false;
  Exit end = with_editor(*session, *found, console, is_edited);
  session->finish_deed({.changed = is_edited ? 1U : 0U, .failed = is_edited || end.code() == kExitOk ? 0U : 1U});
  return end;
}

Exit edit(const Arguments& arguments, Console& console) {
  SLUICE_TRY(edits, parse_edits(arguments));
  if (!edits->empty()) {
    return run_bulk({.words = {.verb = "edit", .done = "edited"}}, std::move(*edits), arguments, console);
  }
  if (message_ids(arguments).empty()) {
    return Exit::usage("say what to edit: ID opens an editor; --set PATH=VALUE and --unset PATH need none");
  }
  for (const std::string name :
       {"dry-run", "all", "where", "older-than", "error", "error-like", "limit", "rate", "resume"}) {
    if (arguments.has(name)) {
      return Exit::usage("an editor takes one ID alone; give --set or --unset with --" + name);
    }
  }
  return edit_by_hand(arguments, console);
}

}  // namespace

std::vector<Command> edit_commands() {
  return {
      {
          .name = "edit",
          .summary = "Change the content of messages",
          .usage = "[QUEUE] (ID... | FILTER | --all) [--set PATH=VALUE]... [--unset PATH]... [OPTION]...",
          .description =
              "With one ID alone it opens $VISUAL or $EDITOR on a JSON document of the message's data, content_type, "
              "attributes and group, and writes back what differs: everything else keeps every digit and type. The "
              "message is changed only if nobody has changed it in between, and never while a handler works on it "
              "unless there is --force. Prints the message.\n\n"
              "PATH is data, data.items[0].sku, data[\"odd key\"], attributes.NAME, content_type or group. Below data "
              "a VALUE is JSON, and text where it is no JSON; elsewhere it is text.\n\n"
              "With a filter, several IDs or --all it needs --set or --unset, and prints a JSON object with the ids "
              "and counts. Ctrl-C then ends it between two messages and says how to go on.",
          .flags =
              with_store_flags(joined({repeated({"set", "PATH=VALUE", "set a value; may be given several times"}),
                                       repeated({"unset", "PATH", "take a value away; may be given several times"})},
                                      choice_flags())),
          .examples = "sluice edit orders A-101\n"
                      "sluice edit orders A-101 --set data.amount=12.50\n"
                      "sluice edit orders --error-like 'no tenant' --set data.tenant=acme",
          .run = edit,
      },
  };
}

}  // namespace sluice::cli
