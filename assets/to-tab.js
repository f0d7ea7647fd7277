() => [...document.querySelectorAll('[role=tab]')].find((tab) => tab.textContent.includes('TAB'))?.click()
