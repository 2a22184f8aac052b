"""GPUs are drawn as cells: each GPU once where there is room, and every use where there is not."""

from __future__ import annotations

from reconciler.text.gpu_cells import GpuCells, GpuUse, draw_gpus, legend


def plain(cells: GpuCells) -> list[str]:
    return ["".join(text for text, _ in line) for line in cells.lines]


def test_each_gpu_of_each_node_has_a_cell() -> None:
    nodes = [{GpuUse.BURST: 2, GpuUse.OTHER: 1, GpuUse.FREE: 1}, {GpuUse.FREE: 4}, {}]
    cells = draw_gpus(nodes, width=20, ascii_only=True)
    assert plain(cells) == ["##x. ...."]
    assert cells.lines == ((("##", "green"), ("x", "bright_black"), (".", "white"), (" ", ""), ("....", "white")),)


def test_nodes_go_on_in_the_next_line() -> None:
    cells = draw_gpus([{GpuUse.FREE: 4}] * 3, width=9, ascii_only=True)
    assert plain(cells) == [".... ....", "...."]


def test_a_node_wider_than_a_line_is_broken() -> None:
    assert plain(draw_gpus([{GpuUse.HOME: 8}], width=6, ascii_only=True)) == ["@@@@@@", "@@"]


def test_nodes_are_joined_where_gaps_take_too_much_room() -> None:
    cells = draw_gpus([{GpuUse.BURST: 1, GpuUse.FREE: 1}] * 5, width=10, lines=1, ascii_only=True)
    assert plain(cells) == ["#####....."]
    assert cells.gpus_per_cell == 1


def test_a_large_cluster_fits_and_keeps_every_use() -> None:
    nodes = [{GpuUse.OTHER: 8}] * 900 + [{GpuUse.BURST: 1, GpuUse.STARTING: 1, GpuUse.FREE: 6}] * 5
    for width, lines in ((5, 1), (40, 1), (80, 3), (137, 2)):
        cells = draw_gpus(nodes, width=width, lines=lines, ascii_only=True)
        assert len(cells.lines) <= lines
        assert all(len(line) <= width for line in plain(cells))
        assert {"#", "+", "x", "."} <= set("".join(plain(cells)))
        assert cells.gpus_per_cell * sum(map(len, plain(cells))) >= 900 * 8 + 40


def test_no_gpus_are_no_lines() -> None:
    assert draw_gpus([{}], width=40).lines == ()


def test_the_legend_names_the_uses_that_are_drawn() -> None:
    line = legend((GpuUse.BURST, GpuUse.FREE), ascii_only=True)
    assert "".join(text for text, _ in line) == "# burst  . free"
