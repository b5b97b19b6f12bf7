"""What a tile of an attention program holds, by templates/cuda/shape.h: its keys, rows, copies and products."""

import re

_BITS = {"float": 32, "f16_t": 16, "bf16_t": 16, "i8_t": 8, "i4x2_t": 4}
_WARPS, _LANES = 4, 32  # of a block of attention


class Unknown(Exception):
    """The shape is not one that these rules give."""


def _round_up(n, unit):
    return -(-n // unit) * unit


def _stride(size):
    return ((size + 15) // 16 | 1) * 16 if size else 0


def _widest_access(size):
    return next(width for width in (16, 8, 4, 2, 1) if size % width == 0)


def constants_of(identity):
    """{"kHeadDim": "128", "variant": "mma", ...} of "attend_decode;variant=mma;...;kHeadDim=128;..."."""
    return dict(re.findall(r"(\w+)=([^;]*)", identity))


class Tile:
    """Of one warp of a decode or prefill program. `products`: tensor cores' instructions in the loop over tiles."""

    def __init__(self, program, constants, shared_bytes, products):
        self.is_decode = program == "decode"
        self.uses_tensor = constants["variant"] == "mma"
        self.head_dim = int(constants["kHeadDim"])
        self.group = int(constants["kGroup"])
        self.is_quantised = constants["kQuantBit"] != "0"
        self.row_bytes = self.head_dim * _BITS[constants["T2"]] // 8
        scales = self.head_dim // int(constants["kQuantGroup"]) if self.is_quantised else 0
        self.scale_bytes = scales * _BITS[constants["T3"]] // 8
        # Decode's call has one new token: of the 16 rows that a block has room for there are as many as query heads.
        self.rows = min(self.group, 16) if self.is_decode else self._warp_rows()
        self.keys = self._mma_keys(products) if self.uses_tensor else self._dot_keys(shared_bytes)

    # ---- Shape ----

    def _warp_rows(self):
        if self.uses_tensor:
            return 32 if self.head_dim <= 128 else 16
        return 16 if self.is_decode or self.head_dim <= 128 else 8

    def _mma_keys(self, products):
        """Decode's are fixed. Prefill's follow from its products of 16x8x16: keys with queries (quantised ones twice,
        with their residuals), and values."""
        if self.is_decode:
            return 16
        steps, matrices = _round_up(self.head_dim, 16) // 16, self._warp_rows() // 16
        keys, rest = divmod(8 * products, matrices * steps * (3 if self.is_quantised else 2))
        if rest or keys not in (16, 32, 64):
            raise Unknown(f"{products} products are no tile of {self.head_dim} elements")
        return keys

    def _dot_keys(self, shared_bytes):
        """Those with which a block takes the shared memory that it takes."""
        for keys in (32, 16, 8):
            rows = self._warp_rows() if not self.is_decode else 16
            teams = _WARPS if self.is_decode else 1
            query = rows * (1 if self.is_decode else _WARPS) * self.head_dim * 4
            tiles = teams * 2 * keys * (_stride(self.row_bytes) + _stride(self.scale_bytes))
            merge = _round_up(_WARPS * 4 * (self.head_dim + 2) * 4, 16) if self.is_decode else 0
            if query + _WARPS * rows * keys * 4 + max(tiles, merge) == shared_bytes:
                return keys
        raise Unknown(f"no tile of {self.head_dim} elements takes {shared_bytes} bytes of shared memory")

    # ---- What a tile takes ----

    @property
    def row_share(self):
        """The part of dot products' rows that are computed: decode stops after the call's, in steps."""
        if self.uses_tensor or not self.is_decode:
            return 1
        step = self.group if self.group <= 2 else 4
        return _round_up(self.rows, step) / 16

    @property
    def value_products(self):
        """float32's multiply-adds of a lane, of probabilities and values."""
        rows = 16 * self.row_share if self.is_decode else self._warp_rows()
        return int(rows * self.keys * _round_up(self.head_dim, 64) // _LANES)

    def copies_of_lane(self, width):
        """A lane's copies of `width` bytes of a tile's keys, or values: of rows, or of scales if rows take another
        width."""
        threads = _LANES * (1 if self.is_decode else _WARPS)
        filled = self.row_bytes
        if self.uses_tensor and not self.is_decode and not self.is_quantised:
            filled = _round_up(self.head_dim, 16) * 2  # with zeros
        size = filled if width == _widest_access(self.row_bytes) else self.scale_bytes
        return -(-self.keys * size // width // threads)

    @property
    def cache_bytes(self):
        """Of its keys and values with their scales."""
        return 2 * self.keys * (self.row_bytes + self.scale_bytes)

    @property
    def operations(self):
        """Floating-point operations that its rows need."""
        return 4 * self.rows * self.keys * self.head_dim
