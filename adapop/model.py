"""A causal language model with a LoRA adapter: adapter on is the unlearned model, adapter off is the original.

There is never a second copy of the weights. Everything is computed for answer tokens only, in float32 from the
logits on, whatever precision the model runs in.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from safetensors import SafetensorError
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from adapop.config import SANDBOX, RunConfig
from adapop.errors import ModelError
from adapop.tokens import AnswerTokens, encode_prompt

# peft asks transformers for an attribute by its old name; nothing a user could do about it
warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated", category=FutureWarning)
SANDBOX_FOLDER = Path(__file__).resolve().parents[1] / "assets" / "sandbox"


@dataclass(frozen=True)
class Scored:
    """A forward pass seen from its N answer tokens.

    nll [N]: -log p of the gold token, nats. gold [N]: its raw logit. row [N]: batch row. On request, logits [N, V];
    hidden [B, D]: mean over the answer's own positions of the last four layers; states [B, K, D]: one block's output
    at the K kept positions. All in float32, or float64 if the model is.
    """

    nll: Tensor
    row: Tensor
    rows: int
    logits: Tensor | None = None
    hidden: Tensor | None = None
    states: Tensor | None = None
    gold: Tensor | None = None

    def per_row(self, values: Tensor) -> Tensor:
        """Sum of a per-token tensor over each row: [N] -> [B]."""
        return torch.zeros(self.rows, dtype=values.dtype, device=values.device).index_add(0, self.row, values)

    def row_mean(self, values: Tensor, counted: Tensor | None = None) -> Tensor:
        """Mean of a per-token tensor over each row's tokens, [N] -> [B]; counted [N]: only over those, 0 if none."""
        weight = torch.ones_like(values) if counted is None else counted.to(values.dtype)
        return self.per_row(values * weight) / self.per_row(weight).clamp(min=1)


class AdaptedModel:
    """Base model and LoRA adapter behind the three things a run needs: score, generate, adapter off."""

    def __init__(self, model: PeftModel, tokenizer: PreTrainedTokenizerBase, system: str = "") -> None:
        self.network, self.tokenizer, self.system = model, tokenizer, system
        self.device = next(model.parameters()).device

    @classmethod
    def load(cls, config: RunConfig, adapter: Path | None = None) -> AdaptedModel:
        """Loads the configured model with a fresh adapter (seeded), or with the saved one in `adapter`.

        Only safetensors are read and no remote code is run.

        Raises:
            ModelError: no such model, no safetensors, no access, or no layer that the adapter could go on.
        """
        if config.model == SANDBOX:
            disable_progress_bar()  # it loads in a blink
        source = str(SANDBOX_FOLDER) if config.model == SANDBOX else config.model
        try:
            tokenizer = AutoTokenizer.from_pretrained(
                source, revision=config.revision, padding_side="left", trust_remote_code=False
            )
            base = AutoModelForCausalLM.from_pretrained(
                source,
                revision=config.revision,
                dtype=getattr(torch, config.precision),
                use_safetensors=True,
                trust_remote_code=False,
            )
        except (OSError, ValueError, RuntimeError, SafetensorError) as error:
            raise ModelError(
                f"The model {config.model!r} cannot be loaded: {str(error).splitlines()[0]}",
                "Check the name; for a gated model set HF_TOKEN; only safetensors without remote code are read.",
            ) from error
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token
        # greedy means argmax: keep where to stop, drop a model's own penalties (Qwen's repetition_penalty, for one)
        base.generation_config = GenerationConfig(eos_token_id=base.generation_config.eos_token_id)
        if torch.cuda.is_available():
            base.to("cuda")
        return cls(_adapted(base, config, adapter), tokenizer, config.system)

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        """The trainable (adapter) parameters, in a fixed order."""
        return [parameter for parameter in self.network.parameters() if parameter.requires_grad]

    @contextmanager
    def original(self) -> Iterator[None]:
        """Inside, the model is the one before unlearning."""
        with self.network.disable_adapter():
            yield

    def score(
        self, batch: AnswerTokens, logits: bool = False, hidden: bool = False, block: int | None = None
    ) -> Scored:
        """Scores the answer tokens of a batch, teacher-forced. block: whose `states` are wanted, counted from 0."""
        batch = batch.to(self.device)
        with self._read(block) as states:
            output = self.network(
                input_ids=batch.ids,
                attention_mask=batch.mask,
                position_ids=batch.positions,
                logits_to_keep=batch.keep,
                output_hidden_states=hidden,
                use_cache=False,
            )
        chosen = _full_precision(output.logits[batch.row, batch.column])
        nll = cross_entropy(chosen, batch.target, reduction="none")
        gold = chosen.gather(1, batch.target.unsqueeze(1)).squeeze(1)
        pooled = _pooled(output.hidden_states[-4:], batch) if hidden else None
        kept = None if block is None else _full_precision(states[0][:, -batch.keep :])
        return Scored(nll, batch.row, batch.rows, chosen if logits else None, pooled, kept, gold)

    @torch.no_grad()
    def state_norm(self, batch: AnswerTokens, block: int) -> tuple[float, int]:
        """(mean norm of a block's output over the batch's real tokens, its width D). The first token of a row is left
        out: in models like Llama its norm is far above all others."""
        batch = batch.to(self.device)
        with self._read(block) as states:
            self.network(
                input_ids=batch.ids,
                attention_mask=batch.mask,
                position_ids=batch.positions,
                logits_to_keep=1,
                use_cache=False,
            )
        states = _full_precision(states[0])
        return states[batch.positions > 0].norm(dim=-1).mean().item(), states.shape[-1]

    @contextmanager
    def _read(self, block: int | None) -> Iterator[list[Tensor]]:
        """Inside, each forward pass adds the block's output, [B, T, D], to the list; nothing without a block.

        Raises:
            ModelError: the model has no such block.
        """
        states: list[Tensor] = []
        if block is None:
            yield states
            return
        blocks = getattr(self.network.get_base_model().base_model, "layers", ())
        if not 0 <= block < len(blocks):
            count = f"{len(blocks)} blocks, counted from 0" if len(blocks) else "no list of blocks called layers"
            raise ModelError(f"The model has no block {block}: it has {count}.", "Set layer and lora_layers to match.")
        hook = blocks[block].register_forward_hook(
            lambda module, inputs, output: states.append(output[0] if isinstance(output, tuple) else output)
        )
        try:
            yield states
        finally:
            hook.remove()

    @torch.no_grad()
    def generate(self, questions: Sequence[str], max_new_tokens: int = 16, batch: int = 256, **drawn) -> list[str]:
        """Answers, one per question, special tokens removed: greedy, or sampled with what `transformers` calls
        temperature, top_p ... Rows are sorted by length, then put back."""
        prompts = [encode_prompt(self.tokenizer, question, self.system) for question in questions]
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        answers = [""] * len(prompts)
        self.network.eval()
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            width = max(len(prompts[i]) for i in chosen)
            pad = [width - len(prompts[i]) for i in chosen]
            ids = torch.tensor([[self.tokenizer.pad_token_id] * p + list(prompts[i]) for p, i in zip(pad, chosen)])
            mask = torch.tensor([[0] * p + [1] * (width - p) for p in pad])
            output = self.network.generate(
                input_ids=ids.to(self.device),
                attention_mask=mask.to(self.device),
                do_sample=bool(drawn),
                max_new_tokens=max_new_tokens,
                pad_token_id=self.tokenizer.pad_token_id,
                **drawn,
            )
            texts = self.tokenizer.batch_decode(output[:, width:], skip_special_tokens=True)
            for i, text in zip(chosen, texts):
                answers[i] = text.strip()
        return answers

    def sample(self, questions: Sequence[str], seed: int, max_new_tokens: int, **drawn: float) -> list[str]:
        """Sampled answers, see `generate`; the same for the same seed. Leaves other random numbers as they were."""
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(seed)
            return self.generate(questions, max_new_tokens, **drawn)

    def check_gradients(self) -> None:
        """After the first backward pass: every LoRA B must have a gradient, or the adapter would not learn.

        Raises:
            ModelError: some have none (gradient checkpointing without input gradients does this silently).
        """
        dead = [
            name
            for name, parameter in self.network.named_parameters()
            if "lora_B" in name and parameter.requires_grad and (parameter.grad is None or not parameter.grad.any())
        ]
        if dead:
            raise ModelError(
                f"{len(dead)} adapter weights got no gradient in the first step, for example {dead[0]}.",
                "Check lora_targets; a method that reads one block needs lora_layers up to it; with gradient "
                "checkpointing, inputs must require gradients.",
            )

    def adapter_state(self) -> dict[str, Tensor]:
        """The adapter's weights by name."""
        return get_peft_model_state_dict(self.network)

    def set_adapter_state(self, state: dict[str, Tensor]) -> None:
        """Puts saved adapter weights in."""
        set_peft_model_state_dict(self.network, state)

    def save_adapter(self, folder: Path) -> None:
        """Writes the adapter as peft does: safetensors and its configuration."""
        self.network.save_pretrained(str(folder))


def _adapted(base: torch.nn.Module, config: RunConfig, adapter: Path | None) -> PeftModel:
    if adapter is not None:
        return PeftModel.from_pretrained(base, str(adapter), is_trainable=True)
    torch.manual_seed(config.seed)
    lora = LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        lora_dropout=0.0,
        bias="none",
        target_modules=list(config.lora_targets),
        layers_to_transform=_layers(base, config.lora_layers),
        task_type="CAUSAL_LM",
    )
    try:
        return get_peft_model(base, lora)
    except ValueError as error:
        raise ModelError(str(error).splitlines()[0], "Set lora_targets to layers this model has.") from error


def _layers(base: torch.nn.Module, chosen: tuple[int, ...] | None) -> list[int] | None:
    """The chosen blocks for peft, which would silently pass over those that do not exist."""
    count = base.config.num_hidden_layers
    if chosen is not None and (missing := [layer for layer in chosen if not 0 <= layer < count]):
        named = ", ".join(map(str, missing))
        raise ModelError(f"lora_layers names {named}, but the model has {count} blocks, from 0.", "Name blocks it has.")
    return None if chosen is None else list(chosen)


def _full_precision(values: Tensor) -> Tensor:
    """In float32, or as they are if that is more."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _pooled(layers: tuple[Tensor, ...], batch: AnswerTokens) -> Tensor:
    """Mean over layers and over each row's answer positions (METHODS 3.3), [B, D]."""
    mean = torch.stack([layer[:, -batch.keep :].float() for layer in layers]).mean(0)
    tokens = mean[batch.row, batch.column + 1]
    total = torch.zeros(batch.rows, tokens.shape[1], device=tokens.device).index_add(0, batch.row, tokens)
    return total / torch.bincount(batch.row, minlength=batch.rows).unsqueeze(1)
