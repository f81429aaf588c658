#include "pipeline/generator.h"

#include <numbers>

#include "base/utf8.h"
#include "runtime/api/conversions.h"
#include "runtime/api/guarded.h"

namespace seqconv {

class Generator::Impl {
 public:
  /// Goes on with a prompt; result.text grows.
  internal::GenerationReport run(
      const GenerationRequest& request,
      const internal::StopQuestion& stop,
      const std::function<void(const std::string&)>& write) const {
    const size_t at = internal::find_invalid_utf8(request.prompt);
    SEQCONV_CHECK(at == std::string_view::npos, "a prompt must be UTF-8, but is not at byte ", at);
    internal::validate(request.sampling, "sampling");
    return generate_text(
        system,
        request.prompt,
        {.length = request.length,
         .sampling = request.sampling,
         .show_prompt = false,
         .stop = stop,
         .workers = workers},
        write);
  }

  internal::LanguageSystem system;
  int64_t workers = 1;
};

Generator::Generator(const std::string& model, const RuntimeOptions& options)
    : impl_(guarded<ModelError>([&] {
        const int64_t threads = check_options_of_others(options);
        return std::make_unique<Impl>(
            Impl{open_language_model(to_path(model, options), to_backends(options)), threads});
      })) {}

Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

std::string Generator::generate(std::string_view prompt) const {
  return guarded([&] {
    GenerationResult result = generate(GenerationRequest{.prompt = std::string(prompt)});
    require_ok(result);
    return std::move(result.text);
  });
}

GenerationResult Generator::generate(
    const GenerationRequest& request,
    const std::function<bool(std::string_view)>& on_text,
    const CancelToken& cancel) const {
  GenerationResult result;
  CallerFunction heard;
  bool enough = false;
  const auto write = [&](const std::string& text) {
    result.text += text;
    if (on_text && !enough)
      heard.make([&] { enough = !on_text(text); });
  };
  const auto stop = [&] { return enough || heard.has_thrown() || cancel.is_cancelled(); };
  guarded([&] {
    internal::run_request(result, [&] {
      const internal::GenerationReport report = impl_->run(request, stop, write);
      result.tokens = report.tokens;
      result.log_probability = report.log2_probability * std::numbers::ln2;
      if (std::string note = internal::unknown_note(
              {report.prompt_tokens, report.unknown_prompt_tokens}, "the prompt");
          !note.empty())
        result.notes.push_back(std::move(note));
      if (report.stopped && !enough)
        throw internal::Stopped();
    });
  });
  heard.rethrow();
  return result;
}

}  // namespace seqconv
