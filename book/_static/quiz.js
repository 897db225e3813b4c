// Turns the options of each question into buttons that answer with the explanation, and keeps the score.
// Without this script the page is a list of questions, each with its answer folded away.

document.querySelectorAll("ol.quiz").forEach((quiz) => {
  const questions = [...quiz.children];
  const score = document.createElement("p");
  score.className = "quiz-score";
  score.setAttribute("role", "status");

  const showScore = () => {
    const answered = questions.filter((question) => question.dataset.answered);
    const right = answered.filter((question) => question.dataset.answered === "right");
    score.textContent = answered.length
      ? `${right.length} of ${answered.length} right, ${questions.length - answered.length} to go.`
      : "";
  };

  questions.forEach((question) => {
    const options = [...question.querySelector(".quiz-options").children];
    const details = question.querySelector("details");
    const feedback = document.createElement("div");
    feedback.className = "quiz-feedback";
    feedback.setAttribute("role", "status"); // screen readers read out what appears here
    details.after(feedback);

    const buttons = options.map((option) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...option.querySelector("p").childNodes);
      option.replaceChildren(button);
      return button;
    });

    const answer = (option) => {
      if (question.dataset.answered) return;
      const right = option.classList.contains("quiz-right");
      question.dataset.answered = right ? "right" : "wrong";
      option.classList.add("quiz-chosen");
      // Not disabled: a disabled button would lose the keyboard's focus.
      buttons.forEach((button) => button.setAttribute("aria-disabled", "true"));
      const verdict = document.createElement("strong");
      verdict.textContent = right ? "Right. " : "No. ";
      const [, letter, ...explanation] = details.children;
      if (right) letter.textContent = "";
      letter.prepend(verdict);
      feedback.append(letter, ...explanation);
      details.remove();
      showScore();
    };
    buttons.forEach((button, i) => button.addEventListener("click", () => answer(options[i])));
  });
  quiz.after(score);
});
