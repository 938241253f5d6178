"""Ed25519 in plain Python, written from RFC 8032: for the reference reader, not for secrets."""

from __future__ import annotations

from hashlib import sha512

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)  # of -1

Point = tuple[
    int, int, int, int
]  # extended: X, Y, Z, T with x = X/Z, y = Y/Z, xy = T/Z


def add(a: Point, b: Point) -> Point:
    """Section 5.1.4."""
    first = (a[1] - a[0]) * (b[1] - b[0]) % P
    second = (a[1] + a[0]) * (b[1] + b[0]) % P
    c = 2 * a[3] * b[3] * D % P
    d = 2 * a[2] * b[2] % P
    e, f, g, h = second - first, d - c, d + c, second + first
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(n: int, point: Point) -> Point:
    total: Point = (0, 1, 1, 0)
    while n:
        if n & 1:
            total = add(total, point)
        point = add(point, point)
        n >>= 1
    return total


def same(a: Point, b: Point) -> bool:
    return (a[0] * b[2] - b[0] * a[2]) % P == (a[1] * b[2] - b[1] * a[2]) % P == 0


def decode(data: bytes) -> Point | None:
    """Section 5.1.3: a point from its 32 bytes."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & ((1 << 255) - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


def encode(point: Point) -> bytes:
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


BASE_POINT = decode((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))
assert BASE_POINT is not None
BASE: Point = BASE_POINT


def scalar(*parts: bytes) -> int:
    return int.from_bytes(sha512(b"".join(parts)).digest(), "little") % ORDER


def expand(seed: bytes) -> tuple[int, bytes]:
    """Section 5.1.5: the secret scalar and the prefix."""
    digest = sha512(seed).digest()
    number = int.from_bytes(digest[:32], "little")
    return number & ((1 << 254) - 8) | 1 << 254, digest[32:]


def public(seed: bytes) -> bytes:
    return encode(times(expand(seed)[0], BASE))


def sign(seed: bytes, message: bytes) -> bytes:
    """Section 5.1.6."""
    secret, prefix = expand(seed)
    key = encode(times(secret, BASE))
    nonce = scalar(prefix, message)
    point = encode(times(nonce, BASE))
    answer = (nonce + scalar(point, key, message) * secret) % ORDER
    return point + answer.to_bytes(32, "little")


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Section 5.1.7."""
    if len(key) != 32 or len(signature) != 64:
        return False
    owner, point = decode(key), decode(signature[:32])
    answer = int.from_bytes(signature[32:], "little")
    if owner is None or point is None or answer >= ORDER:
        return False
    challenge = scalar(signature[:32], key, message)
    return same(times(answer, BASE), add(point, times(challenge, owner)))
