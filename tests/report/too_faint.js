// Texts of less contrast than 4.5 to what is behind them, each with its contrast.
() => {
    const parts = colour => (colour.match(/[\d.]+/g) ?? []).map(Number);
    const channels = colour => {  // 0 to 1, also of color(srgb r g b)
        const [r, g, b, a = 1] = parts(colour);
        return {rgb: colour.startsWith("color(") ? [r, g, b] : [r, g, b].map(c => c / 255), a};
    };
    const bright = ({rgb}) => rgb.map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
    const behind = element => {
        for (let at = element; at; at = at.parentElement) {
            const found = channels(getComputedStyle(at).backgroundColor);
            if (found.a === 1) return found;
        }
        return {rgb: [1, 1, 1], a: 1};
    };
    const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const element = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
        if (!text || !element.checkVisibility() || element.closest("script")) continue;
        const style = getComputedStyle(element), svg = element instanceof SVGElement;
        const one = bright(channels(svg ? style.fill : style.color)), other = bright(behind(element));
        const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        if (ratio < 4.5) found.push(`${ratio.toFixed(2)} ${text}`);
    }
    return found;
}
