"""Values of most recent use."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from odfpy.data.lru_cache import LruCache


def test_what_was_used_longest_ago_is_forgotten() -> None:
    kept: LruCache[str, int] = LruCache(2)
    made: list[str] = []

    def of(key: str) -> int:
        def make() -> int:
            made.append(key)
            return len(made)

        return kept.get(key, make)

    assert [of(key) for key in "abaca"] == [1, 2, 1, 3, 1]
    assert of("b") == 4, "b made room for c"
    assert "".join(made) == "abcb"


def test_all_threads_get_the_same_value() -> None:
    kept: LruCache[int, object] = LruCache(1)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: kept.get(1, object), range(200)))
    assert len(set(map(id, found))) == 1


def test_a_value_takes_the_place_of_another() -> None:
    kept: LruCache[str, int] = LruCache(2)
    for key in "aba":
        kept.put(key, ord(key))
    kept.put("a", 7)
    kept.put("c", 8)
    assert (kept.get("a", int), kept.get("c", int), "b" in kept) == (7, 8, False)
