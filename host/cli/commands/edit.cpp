#include <utility>

#include "base/timestamp.hpp"
#include "host/cli/bulk_command.hpp"
#include "host/cli/command.hpp"
#include "host/cli/editor.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/message_ids.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/message_view.hpp"
#include "host/operate/content_document.hpp"

namespace sluice::cli {

namespace {

using Edits = std::vector<queue::ContentEdit>;

/// What --set and --unset ask for, --unset last.
OrExit<Edits> parse_edits(const Arguments& arguments) {
  Edits edits;
  for (const std::string& text : arguments.all("set")) {
    auto edit = operate::parse_assignment(text);
    if (!edit) {
      return Exit::usage("--set " + edit.error().message());
    }
    edits.push_back(std::move(*edit));
  }
  for (const std::string& text : arguments.all("unset")) {
    auto path = operate::parse_edit_path(text);
    if (!path) {
      return Exit::usage("--unset " + path.error().message());
    }
    edits.push_back({.path = std::move(*path), .json = std::nullopt});
  }
  return edits;
}

/// A file with a message's content under an editor.
class Editing {
 public:
  Editing(const queue::StoredMessage& message, std::string document, EditorFile file, std::string command)
      : message_(message), document_(std::move(document)), file_(std::move(file)), command_(std::move(command)) {}

  static OrExit<Editing> begin(const queue::StoredMessage& message, Console& console) {
    std::string command = editor_command(console.interactive());
    if (command.empty()) {
      return Exit::usage("there is no terminal for an editor; set EDITOR, or write --set PATH=VALUE");
    }
    std::string document = operate::content_document(message);
    auto file = EditorFile::create(document);
    if (!file) {
      return Exit::failure(file.error());
    }
    return Editing(message, std::move(document), std::move(*file), std::move(command));
  }

  /// Until the text can be read, or its author gives up; empty when nothing was changed.
  OrExit<Edits> run(Console& console) {
    while (true) {
      if (const auto ended = run_editor(command_, file_.path()); !ended) {
        return Exit::failure(keep_if_changed(ended.error().message() + "; nothing was changed"));
      }
      const auto text = file_.read();
      if (!text) {
        file_.keep();  // in case it is there all the same
        return Exit::failure(text.error().message() + "; nothing was changed");
      }
      auto edits = operate::content_edits(message_, *text);
      if (edits) {
        return std::move(*edits);
      }
      if (!again(edits.error(), console)) {
        return give_up(edits.error(), console);
      }
    }
  }

  /// Says what is wrong with the text, and asks whether to go on with it; false where nobody can be asked.
  static bool again(const Error& error, Console& console) {
    if (!console.interactive()) {
      return false;
    }
    console.note(error.message());
    return console.confirm("Edit again?");
  }

  /// After `again` was false.
  Exit give_up(const Error& error, const Console& console) {
    return Exit::failure(keep(console.interactive() ? "nothing was changed" : error.message()));
  }

  /// Saves the text for its author, and says where.
  std::string keep(const std::string& why) {
    file_.keep();
    return why + "; your text is in " + file_.path();
  }

 private:
  std::string keep_if_changed(const std::string& why) {
    const auto text = file_.read();
    return text && *text != document_ ? keep(why) : why;
  }

  const queue::StoredMessage& message_;
  std::string document_;
  EditorFile file_;
  std::string command_;
};

Exit show_edited(const queue::StoredMessage& edited, const QueueSession& session, Output output, Console& console) {
  show_message(edited, output, session.clock().wall_now(), console);
  return Exit::ok();
}

Exit with_editor(QueueSession& session, const queue::StoredMessage& message, Output output, Console& console) {
  SLUICE_TRY(editing, Editing::begin(message, console));
  while (true) {
    SLUICE_TRY(edits, editing->run(console));
    if (edits->empty()) {
      console.note("sluice edit: nothing was changed");
      return Exit::ok();
    }
    const auto edited = session.oper().edit(message.message.id, message.version, *edits, session.deadline());
    if (edited) {
      return show_edited(*edited, session, output, console);
    }
    if (edited.error().code() != ErrorCode::invalid) {
      return Exit::failure(editing->keep(session.explained(edited.error())));
    }
    // The store cannot hold the content; its author can mend that.
    if (!Editing::again(edited.error(), console)) {
      return editing->give_up(edited.error(), console);
    }
  }
}

/// The message to be edited if it still has its version; exit 1 when it is in flight and there is no --force.
OrExit<queue::StoredMessage> unclaimed(QueueSession& session, const std::string& id, bool forced) {
  auto found = session.oper().get(id, session.deadline());
  if (found.has_error()) {
    return session.failure(found.error());
  }
  if (!forced && found->state(session.clock().wall_now()) == queue::MessageState::in_flight) {
    return Exit::failure("message " + id + " is in flight until " + format_timestamp(*found->invisible_until) +
                         "; wait for its handler, or add --force");
  }
  return std::move(*found);
}

Exit edit_by_hand(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(id, the_message_id(arguments));
  SLUICE_TRY(session, QueueSession::open(arguments));
  const auto found = unclaimed(*session, *id, arguments.has("force"));
  return found.has_error() ? found.error() : with_editor(*session, *found, *output, console);
}

Exit edit(const Arguments& arguments, Console& console) {
  SLUICE_TRY(edits, parse_edits(arguments));
  if (!edits->empty()) {
    return run_bulk({.words = {.verb = "edit", .done = "edited"}, .work = std::move(*edits)}, arguments, console);
  }
  if (message_ids(arguments).empty()) {
    return Exit::usage("say what to edit: ID opens an editor; --set PATH=VALUE and --unset PATH need none");
  }
  if (arguments.has("dry-run")) {
    return Exit::usage("an editor cannot be tried; give --set or --unset with --dry-run");
  }
  return edit_by_hand(arguments, console);
}

}  // namespace

Command edit_command() {
  return {
      .name = "edit",
      .group = "Messages",
      .summary = "Change the content of messages",
      .usage = "ID... | FILTER | --all [--set PATH=VALUE]... [--unset PATH]... [OPTION]...",
      .description =
          "With one ID alone it opens $VISUAL or $EDITOR on a JSON document of the message's data, content_type, "
          "attributes and group, and writes back what differs: everything else keeps every digit and type. The "
          "message is changed only if nobody has changed it in between, and never while a handler works on it unless "
          "there is --force. Prints the message.\n\n"
          "PATH is data, data.items[0].sku, data[\"odd key\"], attributes.NAME, content_type or group. Below data a "
          "VALUE is JSON, and text where it is no JSON; elsewhere it is text.\n\n"
          "With a filter, several IDs or --all it needs --set or --unset, and prints a JSON object with the ids and "
          "counts. Ctrl-C "
          "then ends it between two messages and says how to go on.",
      .flags = with_store_flags(joined(
          {{.name = "set", .value = "PATH=VALUE", .help = "set a value; may be given several times", .repeated = true},
           {.name = "unset",
            .value = "PATH",
            .help = "take a value away; may be given several times",
            .repeated = true}},
          choice_flags())),
      .positional = {"id"},
      .examples =
          "sluice edit --queue orders A-101\n"
          "sluice edit --queue orders A-101 --set data.amount=12.50\n"
          "sluice edit --queue orders --error-like 'no tenant' --set data.tenant=acme",
      .run = edit,
  };
}

}  // namespace sluice::cli
