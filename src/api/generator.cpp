#include "seqconv/pipeline/generator.h"

#include "conversions.h"
#include "guarded.h"
#include "seqconv/runtime/runtime.h"

namespace seqconv::api {

class Generator::Impl {
 public:
  LanguageSystem system;
};

Generator::Generator(
    const std::string& model,
    const RuntimeOptions& /*options*/)
    : impl_(guarded<ModelError>([&] {
        return std::make_unique<Impl>(
            Impl{open_language_model(model, RuntimeBackends())});
      })) {}

Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

std::string Generator::generate(
    const Request& request,
    const std::function<bool(std::string_view)>& on_text,
    const CancelToken& cancel) const {
  return guarded([&] {
    std::string written;
    bool enough = false;
    const GenerationOptions options{
        .length = request.length,
        .seed = static_cast<int64_t>(request.sampling.seed),
        .sampling = to_sampling(request.sampling),
        .show_prompt = false,
        .stop = [&] { return enough || cancel.is_cancelled(); }};
    generate_text(
        impl_->system,
        request.prompt,
        options,
        [&](const std::string& text) {
          written += text;
          if (!enough && on_text && !on_text(text))
            enough = true;
        });
    return written;
  });
}

}  // namespace seqconv::api
