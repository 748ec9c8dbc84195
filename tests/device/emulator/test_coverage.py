"""The coverage page is what the emulator does."""

from __future__ import annotations

from pathlib import Path

from asmevo.device.emulator.coverage import coverage, page

PAGE = Path(__file__).parents[3] / "docs" / "emulator-coverage.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m asmevo.device.emulator.coverage > docs/emulator-coverage.md")


def test_every_vector_and_scalar_operation_is_decided() -> None:
    """The ALU refuses these mnemonics and no others."""
    refused = {row.example.mnemonic for row in coverage()
               if row.refusal and row.example.encoding[:3] in ("SOP", "VOP")
               and "mfma" not in row.example.mnemonic}
    assert refused == {
        # No model of the register that M0 names, of forks, of the privileged state or of messages.
        "s_movrels_b32", "s_movrels_b64", "s_movreld_b32", "s_movreld_b64", "s_cbranch_g_fork",
        "s_cbranch_i_fork", "s_cbranch_join", "s_rfe_b64", "s_rfe_restore_b64", "s_setkill",
        "s_sethalt", "s_sendmsg", "s_sendmsghalt", "s_endpgm_ordered_ps_done",
        # Undescribed.
        "v_screen_partition_4se_b32_e32", "v_screen_partition_4se_b32_e64",
        "v_screen_partition_4se_b32_dpp", "v_screen_partition_4se_b32_sdwa",
        "v_pk_fmac_f16_dpp", "v_pk_fmac_f16_sdwa"}
