"""Options of `float_adm` whose suffix is as long as it gets."""

ALL_OPTIONS = {
    "adm_enhn_gain_limit": 1.23457,
    "adm_norm_view_dist": 3.12346,
    "adm_noise_weight": 0.123457,
    "adm_csf_scale": 1.23457,
    "adm_csf_diag_scale": 1.23457,
    "adm_ref_display_height": 4320,
    "adm_csf_mode": 1,
    "adm_bypass_cm": 1,
    "adm_adm3_apply_hm": True,
    "adm_p_norm": 2.34568,
    "adm_dlm_weight": 0.123457,
    "adm_min_val": 0.123457,
    **{f"adm_f{i}s{s}": 0.123457 for i in (1, 2) for s in range(4)},
    "adm_skip_aim_scale": 1,
    "adm_skip_scale0": True,
}
